package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// fault is the content of an error page.
type fault struct {
	// Text is the name of the status code, Message describes the problem, and Hint is the next
	// step.
	Text, Message, Hint string
}

// hints contains the next step for each error.
var hints = map[int]string{
	http.StatusUnauthorized: "Open the page through the ingress or the proxy where you sign in: it sends your token in the header Authorization. " +
		"With kubectl and the plugin, kubectl gate ui shows the same pages on your machine.",
	http.StatusServiceUnavailable: "Try again in a moment.",
	http.StatusForbidden:          "Ask an administrator for the role, or select a namespace that you may see with kubectl gate ui -n.",
	http.StatusBadGateway:         "Try again. If the error remains, check the connection to the cluster with kubectl get gates.",
	http.StatusGatewayTimeout:     "The cluster has not responded in time. Try again.",
}

// badf returns the error for an invalid request.
func badf(format string, args ...any) error {
	return Refused{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// codeOf returns the status code of a response.
func codeOf(err error) int {
	var known Refused
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &known):
		return known.Code
	case errors.As(err, new(Missing)):
		return http.StatusNotFound
	case apierrors.IsForbidden(err):
		return http.StatusForbidden
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}
