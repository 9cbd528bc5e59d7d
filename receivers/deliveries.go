package receivers

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var (
	errReplayed = errors.New("this webhook was taken before")
	errTooMany  = fmt.Errorf("more than %d webhooks in %s", maxDeliveries, replayWindow)
)

// deliveryOf identifies a webhook among those that a Gate remembers. Two receivers of
// one Gate may get the same body.
func deliveryOf(receiver, delivery string) string {
	digest := sha256.Sum256([]byte(receiver + "\x00" + delivery))
	return base64.RawURLEncoding.EncodeToString(digest[:16])
}

// remember adds a webhook to those in an annotation, and leaves out what is too old
// to matter. An item that nobody of us can have written is left out.
func remember(annotation, id string, now time.Time) (string, error) {
	var kept []string
	for item := range strings.SplitSeq(annotation, ",") {
		digest, seconds, _ := strings.Cut(item, "=")
		unix, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil || len(digest) != len(id) || now.Sub(time.Unix(unix, 0)).Abs() > replayWindow {
			continue
		}
		if digest == id {
			return "", errReplayed
		}
		kept = append(kept, item)
	}
	if len(kept) >= maxDeliveries {
		return "", errTooMany
	}
	return strings.Join(append(kept, fmt.Sprintf("%s=%d", id, now.Unix())), ","), nil
}
