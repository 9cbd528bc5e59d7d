package controllers

import (
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
)

// failed logs the error of a read from a cache by an event handler, which has no caller that could retry. Such a read fails only while
// the process shuts down.
func failed(err error) {
	if err != nil {
		ctrl.Log.WithName("events").Error(err, "unable to read what an event is about")
	}
}

// unlessUnread returns nil for the error of a kind that is not installed or not read yet: all its objects are enqueued once it is read.
func unlessUnread(err error) error {
	if errors.Is(err, ErrNotInstalled) || errors.Is(err, errNotRead) {
		return nil
	}
	return err
}
