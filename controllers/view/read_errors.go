package view

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
)

// LogReadError logs an error from reading a cache in an event handler, which cannot return it. Such a read fails only while the process
// is shutting down.
func LogReadError(err error) {
	if err != nil {
		ctrl.Log.WithName("events").Error(err, "unable to read the objects that an event affects")
	}
}

// IgnoreUnread returns nil if err means that a kind is not installed or has not been read yet, because all objects of a kind are
// enqueued once they have been read.
func IgnoreUnread(err error) error {
	if errors.Is(err, ErrNotInstalled) || errors.Is(err, ErrNotRead) {
		return nil
	}
	return err
}
