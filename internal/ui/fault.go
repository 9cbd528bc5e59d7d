package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// fault is on the page that says what is wrong.
type fault struct {
	// Text is the name of the code, Message what is wrong, Hint what to do.
	Text, Message, Hint string
}

// hints say what to do after an error.
var hints = map[int]string{
	http.StatusUnauthorized: "Open the page through the ingress or the proxy that logs you in: it sends your token in the header Authorization. " +
		"With kubectl and the plug-in, kubectl gate ui shows the same pages on your machine.",
	http.StatusServiceUnavailable: "Try again in a moment.",
	http.StatusForbidden:          "Ask somebody who may to give you the role, or look at a namespace that you may see with kubectl gate ui -n.",
	http.StatusBadGateway:         "Try again. If it stays, kubectl get gates shows whether the cluster answers you.",
	http.StatusGatewayTimeout:     "The cluster has not answered in time. Try again.",
}

// badf is the error of who asks.
func badf(format string, args ...any) error {
	return Refused{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// codeOf returns the code of an answer.
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
