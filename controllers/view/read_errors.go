package view

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
)

// LogReadError logs the error of a read from a cache in an event handler, which cannot return it. Such a read fails only while the process
// shuts down.
func LogReadError(err error) {
	if err != nil {
		ctrl.Log.WithName("events").Error(err, "unable to read the objects that an event affects")
	}
}

// IgnoreUnread returns nil for the error that a kind is not installed or not read yet, because all its objects are enqueued once they are
// read.
func IgnoreUnread(err error) error {
	if errors.Is(err, ErrNotInstalled) || errors.Is(err, ErrNotRead) {
		return nil
	}
	return err
}
