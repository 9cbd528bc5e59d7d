package receivers

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	errReplayed = errors.New("this webhook was taken before")
	errTooMany  = fmt.Errorf("more than %d webhooks in %s", maxDeliveries, replayWindow)
)

// lengthOfDelivery is that of 16 bytes in base64.
const lengthOfDelivery = 22

// deliveryOf identifies a webhook among those that a Gate remembers. Two receivers of
// one Gate may get the same body.
func deliveryOf(receiver, delivery string) string {
	digest := sha256.Sum256([]byte(receiver + "\x00" + delivery))
	return base64.RawURLEncoding.EncodeToString(digest[:16])
}

// remember adds a webhook to those in an annotation, and leaves out what is too old
// to matter.
func remember(annotation, id string, now time.Time) (string, error) {
	kept := recent(annotation, now)
	switch {
	case remembers(annotation, id, now):
		return "", errReplayed
	case len(kept) >= maxDeliveries:
		return "", errTooMany
	}
	return strings.Join(append(kept, fmt.Sprintf("%s=%d", id, now.Unix())), ","), nil
}

// remembers returns whether a webhook is among those in an annotation.
func remembers(annotation, id string, now time.Time) bool {
	return slices.ContainsFunc(recent(annotation, now), func(item string) bool { return strings.HasPrefix(item, id+"=") })
}

// recent returns the items of an annotation that matter still. One that nobody of us
// can have written is left out.
func recent(annotation string, now time.Time) []string {
	var items []string
	for item := range strings.SplitSeq(annotation, ",") {
		digest, seconds, _ := strings.Cut(item, "=")
		unix, err := strconv.ParseInt(seconds, 10, 64)
		if err == nil && len(digest) == lengthOfDelivery && now.Sub(time.Unix(unix, 0)).Abs() <= replayWindow {
			items = append(items, item)
		}
	}
	return items
}
