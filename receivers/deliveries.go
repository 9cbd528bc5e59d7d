package receivers

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

var (
	errReplayed = errors.New("this webhook was taken before")
	errTooMany  = fmt.Errorf("too many webhooks in %s to remember another one that opens", replayWindow)
)

const (
	// lengthOfSender and lengthOfDelivery are the lengths of 8 and 16 bytes in base64.
	lengthOfSender   = 11
	lengthOfDelivery = 22
	// lengthOfNote is the length of an item without an id, and its comma.
	lengthOfNote = 13
)

// deliveryOf identifies a webhook among those that a Gate remembers. The receiver comes
// first: two receivers of one Gate may get the same body.
func deliveryOf(receiver, delivery string) string {
	sender, digest := sha256.Sum256([]byte(receiver)), sha256.Sum256([]byte(receiver+"\x00"+delivery))
	return base64.RawURLEncoding.EncodeToString(sender[:8]) + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// Kinds of items in the annotation.
const (
	opened = 'o'
	closed = 'c'
	// forgotten is for a webhook that closed and is no longer remembered. It has the time
	// when the webhook was taken. Its id is the receiver alone, or empty for any receiver.
	forgotten = 'x'
)

// item of the annotation, as <id>=<kind><seconds>.
type item struct {
	id   string
	kind byte
	at   int64
}

func (i item) String() string { return i.id + "=" + string(i.kind) + strconv.FormatInt(i.at, 10) }

// sender is the receiver in an id.
func sender(id string) string { return id[:min(len(id), lengthOfSender)] }

// memory is what a Gate remembers of the webhooks that it must not take twice, oldest
// first.
type memory []item

// recall reads what still matters of an annotation. It leaves out items that we cannot
// have written.
func recall(annotation string, now time.Time) memory {
	lengths := map[byte][]int{opened: {lengthOfSender + lengthOfDelivery}, closed: {lengthOfSender + lengthOfDelivery}, forgotten: {0, lengthOfSender}}
	var m memory
	for text := range strings.SplitSeq(annotation, ",") {
		id, value, _ := strings.Cut(text, "=")
		if value == "" || !slices.Contains(lengths[value[0]], len(id)) {
			continue
		}
		unix, err := strconv.ParseInt(value[1:], 10, 64)
		if err == nil && now.Sub(time.Unix(unix, 0)).Abs() <= replayWindow {
			m = append(m, item{id, value[0], unix})
		}
	}
	return m
}

// size is the length of the annotation.
func (m memory) size() int {
	size := len(m) - 1
	for _, i := range m {
		size += len(i.String())
	}
	return size
}

func (m memory) String() string {
	texts := make([]string, len(m))
	for i, item := range m {
		texts[i] = item.String()
	}
	return strings.Join(texts, ",")
}

// has returns whether a webhook was taken before.
func (m memory) has(id string) bool {
	return slices.ContainsFunc(m, func(i item) bool { return i.id == id })
}

// doubts returns whether a webhook may be a forgotten one that closed. It could open now:
// what a receiver makes of it may depend on headers that nobody signed.
func (m memory) doubts(id string) bool {
	return slices.ContainsFunc(m, func(i item) bool { return i.kind == forgotten && (i.id == "" || i.id == sender(id)) })
}

// fits returns whether a receiver is within its quota, and the whole annotation within a
// number of bytes.
func (m memory) fits(id string, room int) bool {
	mine := 0
	for _, i := range m {
		if i.kind != forgotten && sender(i.id) == sender(id) {
			mine++
		}
	}
	return mine <= maxDeliveries && m.size() <= room
}

// with returns the memory with one more webhook. One that opens is refused if it cannot be
// remembered, or if it may be a repetition. One that closes is never refused: it takes the
// place of the oldest one of its receiver that closed. If there is none, it is itself
// forgotten.
func (m memory) with(id string, action v1alpha1.RequestAction, room int, now time.Time) (memory, error) {
	kind := byte(closed)
	if action != v1alpha1.RequestClose {
		kind = opened
	}
	next := append(slices.Clone(m), item{id, kind, now.Unix()})
	if kind == opened {
		if m.doubts(id) || !next.fits(id, room) {
			return nil, errTooMany
		}
		return next, nil
	}
	for !next.fits(id, room) {
		oldest := slices.IndexFunc(next, func(i item) bool { return i.kind == closed && sender(i.id) == sender(id) })
		if oldest < 0 {
			break
		}
		next = next.forget(oldest, room)
	}
	return next, nil
}

// forget replaces an item by a note that there was one. The note names its receiver, or
// none if there is no room for that.
func (m memory) forget(index, room int) memory {
	dropped := m[index]
	rest := slices.Delete(slices.Clone(m), index, index+1)
	if next := rest.note(item{sender(dropped.id), forgotten, dropped.at}); next.size() <= room {
		return next
	}
	return rest.note(item{"", forgotten, dropped.at})
}

// note adds a note. If the same note is there already, it makes that one last as long.
func (m memory) note(note item) memory {
	for i := range m {
		if m[i].kind == forgotten && m[i].id == note.id {
			next := slices.Clone(m)
			next[i].at = max(m[i].at, note.at)
			return next
		}
	}
	return append(slices.Clone(m), note)
}

// remember returns the annotation of a Gate after it has taken a webhook, empty if the
// webhook is not remembered.
func remember(obj *v1alpha1.Gate, a ask, now time.Time) (string, error) {
	known := recall(obj.Annotations[v1alpha1.DeliveriesAnnotation], now)
	id := cmp.Or(a.delivery, a.repeats)
	switch {
	case id == "":
		return "", nil
	case known.has(id):
		return "", errReplayed
	case a.delivery == "" && a.action == v1alpha1.RequestOpen && known.doubts(id):
		return "", errTooMany
	case a.delivery == "":
		return "", nil
	}
	next, err := known.with(id, a.action, roomOf(obj), now)
	return next.String(), err
}

// roomOf returns how many bytes the annotation may have besides the other annotations of a
// Gate and a note.
func roomOf(obj *v1alpha1.Gate) int {
	room := validation.TotalAnnotationSizeLimitB - maxRequestBytes - len(v1alpha1.DeliveriesAnnotation)
	for name, value := range obj.Annotations {
		if name != v1alpha1.DeliveriesAnnotation {
			room -= len(name) + len(value)
		}
	}
	return min(room, maxDeliveriesBytes) - lengthOfNote
}
