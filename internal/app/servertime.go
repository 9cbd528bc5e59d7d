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

// serverTimeTimeout is how long a Gate that could open waits for the time. The Gates
// behind it in the same worker wait too.
const serverTimeTimeout = 2 * time.Second

// serverTime returns a function that asks the API server for the time, cut off to the
// second. The time is in the header of every answer. An answer that is older than the
// question does not count. Nothing else in the answer matters, not even whether the
// controller is allowed to have it. The function does not wait for the limits of the
// client, which are for writes.
func serverTime(mgr ctrl.Manager) (func(context.Context) (time.Time, error), error) {
	base, _, err := rest.DefaultServerUrlFor(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("unable to tell the address of the API server: %w", err)
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
		defer response.Body.Close() //nolint:errcheck // all of it that counts was read
		// A connection is used again only after its answer was read.
		_, _ = io.CopyN(io.Discard, response.Body, maxVersion)
		if response.StatusCode >= http.StatusInternalServerError {
			return time.Time{}, fmt.Errorf("it answers %s", response.Status) // something in between may
		}
		return http.ParseTime(response.Header.Get("Date"))
	}
}

// maxVersion bounds how much is read of an answer.
const maxVersion = 16 << 10
