package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// serverTimeTimeout bounds how long a Gate that could open waits for the time of the API server. The next Gates in the queue of the same
// worker also have to wait.
const serverTimeTimeout = 2 * time.Second

// serverTime returns a function that gets the time of the API server, rounded down to the second, from a response header. The function
// requests a response that is not cached. It ignores the status of the response unless it is a server error, so the controller needs no
// permission. It bypasses the rate limit of the client, which is for writes.
func serverTime(mgr ctrl.Manager) (func(context.Context) (time.Time, error), error) {
	base, _, err := rest.DefaultServerUrlFor(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("unable to get the address of the API server: %w", err)
	}
	return requestTimeFrom(mgr.GetHTTPClient(), base.JoinPath("version").String()), nil
}

func requestTimeFrom(client *http.Client, url string) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		ctx, cancel := context.WithTimeout(ctx, serverTimeTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return time.Time{}, err
		}
		request.Header.Set("Cache-Control", "no-cache")
		response, err := client.Do(request)
		if err != nil {
			return time.Time{}, err
		}
		defer response.Body.Close() //nolint:errcheck // the relevant part was read
		// A connection is reused only after the response has been read.
		_, _ = io.CopyN(io.Discard, response.Body, maxVersion)
		if response.StatusCode >= http.StatusInternalServerError {
			return time.Time{}, fmt.Errorf("it responds with %s", response.Status) // the response may be from a proxy
		}
		return http.ParseTime(response.Header.Get("Date"))
	}
}

// maxVersion bounds how much of a response is read.
const maxVersion = 16 << 10
