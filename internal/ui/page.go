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

// content makes what only one page has, of what was read before. It needs nothing but the processor.
type content struct {
	// key names all that the content is made of, for a page that others see as well. It is empty if nobody knows.
	key  string
	make func() (any, error)
}

// fixed is content that is there already.
func fixed(shown any) content { return content{make: func() (any, error) { return shown, nil }} }

// page returns what answers with a page, or with one that says what is wrong.
func (h *handler) page(name string, of func(*request) (content, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), making)
		defer cancel()
		asks := &request{Request: r.WithContext(ctx)}
		code, page, err := h.make(asks, name, of)
		crowd := h.crowd(asks)
		if err == nil && crowd.lend(page) {
			defer crowd.back(page)
		} else if err == nil {
			code, page, err = h.fault(asks, errSlow)
		}
		sends, cancel := context.WithTimeout(r.Context(), sending)
		defer cancel()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(sending)) //nolint:forbidigo // a deadline of the network, decides nothing
		if err != nil {
			h.Log.Printf("page %s: %v", name, err)
			http.Error(w, "The page cannot be made, the log says why.", http.StatusInternalServerError)
			return
		}
		if code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		page.send(w, r.WithContext(sends), code, h.budget(asks))
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
func (h *handler) make(asks *request, name string, of func(*request) (content, error)) (code int, made *packed, err error) {
	if made, err = h.known(asks, name, of); err != nil {
		return h.fault(asks, err)
	}
	return http.StatusOK, made, nil
}

// fault makes a page that says what is wrong.
func (h *handler) fault(asks *request, wrong error) (code int, made *packed, err error) {
	code = codeOf(wrong)
	made, err = h.pack(asks, "error", fault{http.StatusText(code), wrong.Error(), hints[code]})
	return code, made, err
}

// known makes a page for a viewer who may see it.
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
		done, err := h.upload(asks)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	return h.read(asks, name, of)
}

// read reads what a page is made of, and has it made. A page of a moment ago is returned as it was.
func (h *handler) read(asks *request, name string, of func(*request) (content, error)) (made *packed, err error) {
	key, crowd := h.live.edition.momentary(asks), h.crowd(asks)
	if made = h.recent.get(key, h.Clock.Now()); made != nil {
		return made, nil
	}
	over, err := h.recent.turn(asks.Context(), key)
	if err != nil {
		return nil, err
	}
	defer over()
	if made = h.recent.get(key, h.Clock.Now()); made != nil {
		return made, nil
	}
	done, err := crowd.begin(asks.Context(), asks.viewer.Person)
	if err != nil {
		return nil, err
	}
	defer done()
	begin := h.Clock.Now()
	c, err := of(asks)
	if asks.view.Bare { // it has asked no other process
		h.budget(asks).Took(h.Clock.Since(begin))
	}
	if err != nil {
		return nil, err
	}
	if made, err = h.keep(asks, name, c); err == nil {
		now := h.Clock.Now()
		h.recent.put(key, made, now, now.Sub(begin))
	}
	return made, err
}

// keep returns a page that was kept, or makes it.
func (h *handler) keep(asks *request, name string, c content) (made *packed, err error) {
	done, err := h.making.enter(asks.Context(), asks.viewer.Person)
	if err != nil {
		return nil, err
	}
	defer done()
	if c.key != "" {
		if done, err = enter(asks.Context(), h.turn); err != nil {
			return nil, err
		}
		defer done()
		if made, ok := h.kept.get(c.key); ok {
			return made, nil
		}
	}
	begin := h.Clock.Now()
	defer func() {
		took := h.Clock.Since(begin)
		h.live.costs(took)
		h.budget(asks).Took(took)
	}()
	shown, err := c.make()
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

// Errors for a page that the others of a crowd leave no room for.
var (
	errBusy error = Refused{http.StatusServiceUnavailable, errors.New("too many pages are asked for at once")}
	errSlow error = Refused{http.StatusServiceUnavailable, errors.New("too many read other pages too slowly")}
)
