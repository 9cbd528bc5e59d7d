package ui

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// request is a request for a page.
type request struct {
	*http.Request
	view   view
	viewer Viewer
	// uploaded contains the manifests to preview.
	uploaded string
}

// content renders the part that is specific to a page, from data that has already been read. It needs only CPU time.
type content struct {
	// key identifies all inputs of the content, for a page that other viewers see, too. It is empty if unknown.
	key  string
	make func() (any, error)
}

// fixed returns content that needs no rendering.
func fixed(shown any) content { return content{make: func() (any, error) { return shown, nil }} }

// page returns a handler that serves a page, or an error page.
func (h *handler) page(name string, of func(*request) (content, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), making)
		defer cancel()
		asks := &request{Request: r.WithContext(ctx)}
		code, page, err := h.make(asks, name, of)
		limits := h.limitsOf(asks)
		if err == nil && limits.sends.begin(page) {
			defer limits.sends.end(page)
		} else if err == nil {
			code, page, err = h.fault(asks, errSlow)
		}
		sends, cancel := context.WithTimeout(r.Context(), sending)
		defer cancel()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sending)) //nolint:forbidigo // a network deadline
		if err != nil {
			h.Log.Printf("page %s: %v", name, err)
			http.Error(w, "The page cannot be rendered, see the log.", http.StatusInternalServerError)
			return
		}
		if code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		page.send(w, r.WithContext(sends), code, limits.Limiter, asks.viewer.Person)
	}
}

// make renders a page, or an error page if that fails. It returns an error if rendering the error page also fails.
func (h *handler) make(asks *request, name string, of func(*request) (content, error)) (code int, made *packed, err error) {
	if made, err = h.known(asks, name, of); err != nil {
		return h.fault(asks, err)
	}
	return http.StatusOK, made, nil
}

// fault renders the error page for the error wrong. code is the status code of the response.
func (h *handler) fault(asks *request, wrong error) (code int, made *packed, err error) {
	code = codeOf(wrong)
	made, err = h.pack(asks, "error", fault{http.StatusText(code), wrong.Error(), hints[code]})
	return code, made, err
}

// known authenticates the viewer and renders the page.
func (h *handler) known(asks *request, name string, of func(*request) (content, error)) (made *packed, err error) {
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
		end, err := h.upload(asks)
		if err != nil {
			return nil, err
		}
		defer end(0)
	}
	return h.read(asks, name, of)
}

// read returns the page from the cache, or reads its inputs and renders it.
func (h *handler) read(asks *request, name string, of func(*request) (content, error)) (*packed, error) {
	return h.rendered.page(asks.Context(), h.live.edition.key(asks), func() (page *packed, lasts time.Duration, err error) {
		end, err := h.limitsOf(asks).begin(asks.Context(), asks.viewer.Person)
		if err != nil {
			return nil, 0, err
		}
		begin, took := h.Clock.Now(), time.Duration(0)
		defer func() { end(took) }()
		c, err := of(asks)
		if asks.view.Bare { // read from memory, so the elapsed time is CPU time
			took = h.Clock.Since(begin)
		}
		if err != nil {
			return nil, 0, err
		}
		page, err = h.rendered.page(asks.Context(), c.key, func() (*packed, time.Duration, error) {
			end, err := h.rendering.Begin(asks.Context(), "")
			if err != nil {
				return nil, 0, err
			}
			defer end(0)
			begin := h.Clock.Now()
			defer func() {
				rendering := h.Clock.Since(begin)
				h.live.costs(rendering)
				took += rendering
			}()
			shown, err := c.make()
			if err != nil {
				return nil, 0, err
			}
			page, err := h.pack(asks, name, shown)
			return page, time.Minute, err
		})
		return page, min(burst, share*h.Clock.Since(begin)), err
	})
}

func (h *handler) pack(asks *request, name string, shown any) (*packed, error) {
	return pack(func(w io.Writer) error {
		return h.pages[name].ExecuteTemplate(w, "layout", layout{asks.view, shown, name})
	})
}

// layout is the part that all pages have in common.
type layout struct {
	View    view
	Content any
	// Name is the name of the page.
	Name string
}

// ErrBare is returned for details that a viewer without a token is not allowed to see.
var ErrBare error = Refused{http.StatusUnauthorized, errors.New("sign in: without a token, the pages have only names, states and times of gates")}

// Errors for a page that exceeds a limit.
var (
	errBusy error = Refused{http.StatusServiceUnavailable, errors.New("too many pages are requested at once")}
	errSlow error = Refused{http.StatusServiceUnavailable, errors.New("too many clients read other pages too slowly")}
)
