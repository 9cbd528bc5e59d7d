package ui

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// request is one for a page.
type request struct {
	*http.Request
	view   view
	viewer Viewer
	// uploaded are the manifests that somebody wants to try.
	uploaded string
}

// content is what only one page has. later makes it: it is not made if the page is kept under the key. No key is for a page that is not kept.
type content struct {
	key   string
	later func() (any, error)
}

// page returns what answers with a page, or with one that says what is wrong.
func (h *handler) page(name string, of func(*request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), making)
		defer cancel()
		code, page, err := h.make(r.WithContext(ctx), name, of)
		if err == nil && !h.lend(page) {
			code = http.StatusServiceUnavailable
			page, err = h.pack(&request{Request: r}, "error", fault{http.StatusText(code), "too many read other pages too slowly", hints[code]})
		} else if err == nil {
			defer h.back(page)
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sending)) //nolint:forbidigo // a deadline of the network, decides nothing
		if err != nil {
			h.Log.Printf("page %s: %v", name, err)
			http.Error(w, "The page cannot be made, the log says why.", http.StatusInternalServerError)
			return
		}
		if code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		page.send(w, r, code)
	}
}

// enter waits for a slot. Its end makes room for the next.
func enter(ctx context.Context, slots chan struct{}) (done func(), err error) {
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// make makes a page. The error is that there is none, not even one that says what is wrong.
func (h *handler) make(r *http.Request, name string, of func(*request) (any, error)) (code int, made *packed, err error) {
	asks := &request{Request: r}
	made, err = h.known(asks, name, of)
	if code = codeOf(err); err != nil {
		made, err = h.pack(asks, "error", fault{http.StatusText(code), err.Error(), hints[code]})
	}
	return code, made, err
}

// known makes a page for a viewer who may see it.
func (h *handler) known(asks *request, name string, of func(*request) (any, error)) (made *packed, err error) {
	if asks.view, err = h.view(asks, nil); err != nil {
		return nil, err
	}
	if asks.viewer, err = h.Viewers.Of(asks.Request); err != nil {
		return nil, err
	}
	asks.view.Bare = asks.viewer.Bare
	if name == "whatif" && asks.view.Bare {
		return nil, ErrBare
	}
	if name == "whatif" && asks.Method == http.MethodPost {
		if err := h.upload(asks); err != nil {
			return nil, err
		}
	}
	done, err := enter(asks.Context(), h.making)
	if err != nil {
		return nil, err
	}
	defer done()
	begin := h.Clock.Now()
	defer func() { h.live.costs(h.Clock.Since(begin)) }()
	shown, err := of(asks)
	if err != nil {
		return nil, err
	}
	if c, ok := shown.(content); ok {
		return h.keep(asks, name, c)
	}
	return h.pack(asks, name, shown)
}

// keep returns a page that was kept, or makes it.
func (h *handler) keep(asks *request, name string, c content) (made *packed, err error) {
	done, err := enter(asks.Context(), h.turn)
	if err != nil {
		return nil, err
	}
	defer done()
	if made, ok := h.kept.get(c.key); ok {
		return made, nil
	}
	shown, err := c.later()
	if err != nil {
		return nil, err
	}
	if made, err = h.pack(asks, name, shown); err == nil && c.key != "" {
		h.kept.put(c.key, made, len(made.body))
	}
	return made, err
}

func (h *handler) pack(asks *request, name string, shown any) (*packed, error) {
	return pack(func(w io.Writer) error {
		return h.pages[name].ExecuteTemplate(w, "layout", layout{asks.view, shown, name})
	})
}

// layout is what is on each page.
type layout struct {
	View    view
	Content any
	// Name is that of the page.
	Name string
}

// ErrBare is for what a viewer may not see who may know names, states and times only.
var ErrBare error = Refused{http.StatusUnauthorized, errors.New("without a token, the pages have names, states and times of gates only")}
