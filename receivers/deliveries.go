package receivers

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

var (
	errReplayed = errors.New(msgReplayed)
	// errUnreadable is returned for an annotation that was not written by deliveries.String. It may have recorded any webhook.
	errUnreadable = fmt.Errorf(msgRecordUnreadable+
		msgRecordUnreadableRemedy, v1alpha1.DeliveriesAnnotation)
	errTooMany = fmt.Errorf(msgTooMany, replayWindow)
)

// Lengths in the annotation, in bytes.
const (
	// senderLength and digestLength are 6 and 12 bytes in base64.
	senderLength = 8
	digestLength = 16
	// timeLength is the length in base64 of the number of seconds since the first item. Two items are at most 2 * replayWindow apart.
	timeLength = 2
	// minRecordLength is the length of an annotation that contains only a dropped item without a receiver.
	minRecordLength = len("1234567890,:xAB")
)

// deliveryID returns the id of a webhook in the record on a Gate: 48 bits of a digest of the receiver, and 96 bits of a digest of the
// webhook.
//
// The same webhook always has the same digest, so it never opens a Gate twice. After a collision, a new webhook is refused, because its
// digest is already recorded. An attacker with the token can find two webhooks with the same digest in 2^48 steps. The second one is
// refused, which has the same effect as not sending it. To block the webhook of another sender, the attacker needs a webhook with the
// same digest, which takes 2^96 steps, and the token of the receiver within the replay window. Two receivers with the same 48 bits share
// a quota.
func deliveryID(receiver, delivery string) string {
	sender, digest := sha256.Sum256([]byte(receiver)), sha256.Sum256([]byte(receiver+"\x00"+delivery))
	return encoding.EncodeToString(sender[:6]) + encoding.EncodeToString(digest[:12])
}

var encoding = base64.RawURLEncoding

// Kinds of items in the annotation.
const (
	opened = 'o'
	closed = 'c'
	// dropped marks that a webhook that closed is no longer recorded. The time of the item is the time when the webhook was accepted. The id is the
	// receiver alone, or empty for any receiver.
	dropped = 'x'
)

// item is an item of the annotation.
type item struct {
	id   string
	kind byte
	// at is rounded up to seconds, so that no item expires before replayWindow.
	at int64
}

func roundUp(t time.Time) int64 { return t.Add(time.Second - 1).Unix() }

// sender returns the digest of the receiver that is part of an id.
func sender(id string) string { return id[:min(len(id), senderLength)] }

// size returns the length of an item without its receiver.
func (i item) size() int {
	if i.kind == dropped {
		return 1 + timeLength
	}
	return 1 + timeLength + digestLength
}

// deliveries contains the records of the webhooks that a Gate must not accept twice, the oldest of each receiver first.
type deliveries []item

// groupSyntax matches a group: the digest of a receiver or nothing, a colon, and items.
var groupSyntax = regexp.MustCompile(fmt.Sprintf(`^(?:[\w-]{%[1]d}:(?:[oc][\w-]{%[2]d}|x[\w-]{%[3]d})+|:x[\w-]{%[3]d})$`,
	senderLength, timeLength+digestLength, timeLength))

// recall parses an annotation written by deliveries.String, and omits expired items. It returns errUnreadable if any part of the
// annotation is malformed.
func recall(annotation string, now time.Time) (m deliveries, err error) {
	if annotation == "" {
		return nil, nil
	}
	first, groups, _ := strings.Cut(annotation, ",")
	from, err := strconv.ParseInt(first, 10, 40)
	if err != nil {
		return nil, errUnreadable
	}
	for group := range strings.SplitSeq(groups, ",") {
		if !groupSyntax.MatchString(group) {
			return nil, errUnreadable
		}
		by, items, _ := strings.Cut(group, ":")
		for items != "" {
			i := item{id: by, kind: items[0]}
			size := i.size()
			i.id += items[1+timeLength : size]
			offset, _ := encoding.DecodeString("AA" + items[1:1+timeLength])
			i.at = from + int64(offset[1])<<8 + int64(offset[2])
			if now.Sub(time.Unix(i.at, 0)).Abs() <= replayWindow {
				m = append(m, i)
			}
			items = items[size:]
		}
	}
	return m, nil
}

// size returns the length of the annotation.
func (m deliveries) size() int {
	if len(m) == 0 {
		return 0
	}
	size, senders := len(strconv.FormatInt(m.first(), 10)), map[string]bool{}
	for _, i := range m {
		size += i.size()
		if by := sender(i.id); !senders[by] {
			senders[by] = true
			size += len(",:") + len(by)
		}
	}
	return size
}

// first returns the time of the oldest item.
func (m deliveries) first() int64 {
	return slices.MinFunc(m, func(a, b item) int { return cmp.Compare(a.at, b.at) }).at
}

// String returns the annotation. It contains the time of the oldest item in seconds since 1970, and for each receiver a comma, the digest
// of the receiver, a colon and its items. An item contains its kind, the seconds since the oldest item, and the digest of the webhook.
func (m deliveries) String() string {
	if len(m) == 0 {
		return ""
	}
	first, order, groups := m.first(), []string(nil), map[string][]byte{}
	for _, i := range m {
		by, offset := sender(i.id), i.at-first
		if groups[by] == nil {
			order = append(order, by)
		}
		seconds := encoding.EncodeToString([]byte{0, byte(offset >> 8), byte(offset)})
		groups[by] = append(append(append(groups[by], i.kind), seconds[len(seconds)-timeLength:]...), i.id[len(by):]...)
	}
	var text strings.Builder
	text.WriteString(strconv.FormatInt(first, 10))
	for _, by := range order {
		text.WriteString("," + by + ":")
		text.Write(groups[by])
	}
	return text.String()
}

// has returns whether a webhook was accepted before.
func (m deliveries) has(id string) bool {
	return slices.ContainsFunc(m, func(i item) bool { return i.id == id })
}

// mayRepeat returns whether a webhook may be a repetition of a dropped webhook that closed. The same webhook could open now, because the
// action of a receiver may depend on headers that are not signed.
func (m deliveries) mayRepeat(id string) bool {
	return slices.ContainsFunc(m, func(i item) bool { return i.kind == dropped && (i.id == "" || i.id == sender(id)) })
}

// used returns how many webhooks are recorded for the receiver in an id, and the size of the items in bytes.
func (m deliveries) used(id string) (webhooks, bytes int) {
	for _, i := range m {
		if sender(i.id) != sender(id) {
			continue
		}
		bytes += i.size()
		if i.kind != dropped {
			webhooks++
		}
	}
	return webhooks, bytes + len(",:") + len(sender(id))
}

// fits returns whether a receiver is within its quota, and uses at most half of the bytes that other receivers leave free.
func (m deliveries) fits(id string, room int) bool {
	webhooks, bytes := m.used(id)
	return webhooks <= maxDeliveries && bytes <= room-m.size()
}

// replaces returns whether m needs no more bytes than before, and the receiver is within its quota of webhooks.
func (m deliveries) replaces(before deliveries, id string, room int) bool {
	webhooks, _ := m.used(id)
	return webhooks <= maxDeliveries && m.size() <= min(room, before.size())
}

// add returns the deliveries with one more webhook. It returns errTooMany for a webhook that opens if the webhook cannot be recorded, or
// may be a repetition. A webhook that closes is never refused. If necessary, it replaces the oldest webhook of its receiver that closed.
// If there is none, the new webhook itself is dropped.
func (m deliveries) add(id string, action v1alpha1.RequestAction, room int, now time.Time) (deliveries, error) {
	kind := byte(closed)
	if action != v1alpha1.RequestClose {
		kind = opened
	}
	next := append(slices.Clone(m), item{id, kind, roundUp(now)})
	if kind == opened {
		if m.mayRepeat(id) || !next.fits(id, room) {
			return nil, errTooMany
		}
		return next, nil
	}
	for !next.fits(id, room) && !next.replaces(m, id, room) {
		oldest := slices.IndexFunc(next, func(i item) bool { return i.kind == closed && sender(i.id) == sender(id) })
		if oldest < 0 {
			break
		}
		next = next.drop(oldest, room)
	}
	return next, nil
}

// drop replaces an item with a dropped item for its receiver, or with a dropped item for any receiver if there is no space for that.
func (m deliveries) drop(index, room int) deliveries {
	last := m[index]
	rest := slices.Delete(slices.Clone(m), index, index+1)
	if next := rest.addDropped(item{sender(last.id), dropped, last.at}); next.size() <= room {
		return next
	}
	return rest.addDropped(item{"", dropped, last.at})
}

// addDropped adds a dropped item. If there is already one for the same receiver, it extends that item.
func (m deliveries) addDropped(note item) deliveries {
	for i := range m {
		if m[i].kind == dropped && m[i].id == note.id {
			next := slices.Clone(m)
			next[i].at = max(m[i].at, note.at)
			return next
		}
	}
	return append(slices.Clone(m), note)
}

// recordDelivery returns the annotation of a Gate after it has accepted a webhook, empty if the webhook is not recorded. If the existing
// annotation cannot be read, it returns errUnreadable for a webhook that opens. For a webhook that closes, it starts a new record, as if
// the webhook had replaced all others.
func recordDelivery(obj *v1alpha1.Gate, a gateRequest, now time.Time) (string, error) {
	known, err := recall(obj.Annotations[v1alpha1.DeliveriesAnnotation], now)
	if err != nil {
		if a.action != v1alpha1.RequestClose {
			return "", err
		}
		known = deliveries{{kind: dropped, at: roundUp(now)}}
	}
	id := cmp.Or(a.delivery, a.repeats)
	switch {
	case err != nil && a.delivery == "":
		return known.String(), nil
	case id == "":
		return "", nil
	case known.has(id):
		return "", errReplayed
	case a.delivery == "" && a.action == v1alpha1.RequestOpen && known.mayRepeat(id):
		return "", errTooMany
	case a.delivery == "":
		return "", nil
	}
	next, err := known.add(id, a.action, availableBytes(obj), now)
	return next.String(), err
}

// availableBytes returns how many bytes are available for the annotation, given the other annotations of a Gate.
func availableBytes(obj *v1alpha1.Gate) int {
	room := validation.TotalAnnotationSizeLimitB - maxRequestBytes - len(v1alpha1.DeliveriesAnnotation)
	for name, value := range obj.Annotations {
		if name != v1alpha1.DeliveriesAnnotation {
			room -= len(name) + len(value)
		}
	}
	return min(room, maxDeliveriesBytes) - minRecordLength
}
