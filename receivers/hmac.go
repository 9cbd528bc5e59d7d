package receivers

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // HMAC with SHA-1 is secure, and old senders support nothing else.
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	signatureHeader = v1alpha1.DefaultSignatureHeader
	// deliveryHeader is an optional header of generic-hmac. If it is set, the same body is accepted only once. The value of the header is
	// not signed, so the body is recorded instead.
	deliveryHeader = "X-Delivery-Id"
)

// maxTokens is how many tokens a receiver may have: the current and the previous one.
const maxTokens = 2

var hashes = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

// maxSignatures bounds how many signatures in a header are compared. A sender may send several while it rotates its keys.
const maxSignatures = 8

// listed returns the first maxSignatures signatures in a header.
func listed(header, separator string) []string {
	all := strings.SplitN(header, separator, maxSignatures+1)
	return all[:min(len(all), maxSignatures)]
}

// signed returns whether a signature, <algorithm>=<hex>, is the HMAC of the body with one of the tokens and one of the algorithms.
func signed(signature string, body []byte, tokens []string, algorithms ...string) bool {
	name, digest, _ := strings.Cut(signature, "=")
	sum, err := hex.DecodeString(digest)
	isKnown := err == nil && slices.Contains(algorithms, name)
	if !isKnown {
		name = algorithms[0]
	}
	return matches(hashes[name], tokens, [][]byte{sum}, body) && isKnown
}

// matches returns whether one of the sums is the HMAC of the parts with one of the keys. It computes at least maxTokens HMACs, so that
// the time does not reveal how many keys there are or which key matches. An empty key never matches.
func matches[K string | []byte](newHash func() hash.Hash, keys []K, sums [][]byte, parts ...[]byte) bool {
	found := false
	for i := range max(len(keys), maxTokens) {
		var key K
		if i < len(keys) {
			key = keys[i]
		}
		mac := hmac.New(newHash, []byte(key))
		for _, part := range parts {
			mac.Write(part)
		}
		want := mac.Sum(nil)
		for _, sum := range sums {
			if hmac.Equal(sum, want) && len(key) > 0 {
				found = true
			}
		}
	}
	return found
}

// unixTime returns the time in a header. It returns false if the header is not a number of seconds.
func unixTime(text string) (time.Time, bool) {
	seconds, err := strconv.ParseUint(text, 10, 40)
	return time.Unix(int64(seconds), 0), err == nil
}

// genericHMAC accepts any request that is signed as specified in spec.signature, by default in X-Signature. A JSON object in the body may
// contain a reason or a message, and the time of the signature in timestamp.
type genericHMAC struct {
	v1alpha1.ReceiverSignature
	// before and after surround the time in the signed text.
	before, after string
}

// newGenericHMAC repeats the checks of the API server. Otherwise, the signature for a receiver created before these checks existed might
// not cover the whole body.
func newGenericHMAC(spec *v1alpha1.ReceiverSignature) (genericHMAC, error) {
	if spec == nil {
		return genericHMAC{}, nil
	}
	before, rest, hasTime := strings.Cut(spec.GetPayload(), "{timestamp}")
	after, hasBody := strings.CutSuffix(rest, "{body}")
	if !hasTime || !hasBody || strings.Trim(after, "0123456789") == "" {
		return genericHMAC{}, errors.New(msgPayloadForm)
	}
	if hashes[spec.Algorithm] == nil && (spec.Algorithm != "" || spec.Prefix != "") {
		return genericHMAC{}, errors.New(msgAlgorithm)
	}
	return genericHMAC{*spec, before, after}, nil
}

// sums returns the digests in a header, and the name of their algorithm.
func (g genericHMAC) sums(header string) (algorithm string, sums [][]byte) {
	decode := hex.DecodeString
	if g.GetEncoding() == v1alpha1.SignatureBase64 {
		decode = base64.StdEncoding.Strict().DecodeString
	}
	signatures, prefix := listed(header, ","), g.Prefix
	switch algorithm = g.Algorithm; {
	case algorithm == "":
		algorithm, _, _ = strings.Cut(header, "=")
		if hashes[algorithm] == nil {
			return "sha256", nil
		}
		signatures, prefix = []string{header}, algorithm+"="
	case prefix == "":
		signatures = []string{header}
	}
	for _, signature := range signatures {
		digest, found := strings.CutPrefix(signature, prefix)
		if sum, err := decode(digest); found && err == nil {
			sums = append(sums, sum)
		}
	}
	return algorithm, sums
}

func (g genericHMAC) verify(_ context.Context, in *incoming) (*webhook, error) {
	algorithm, sums := g.sums(only(in.header, g.GetHeader()))
	start, at, isTime := "", time.Time{}, true
	if g.TimestampHeader != "" {
		stamp := only(in.header, g.TimestampHeader)
		at, isTime = unixTime(stamp)
		start = g.before + stamp + g.after
	}
	if !matches(hashes[algorithm], in.keys(), sums, []byte(start), in.body) || !isTime {
		return nil, fmt.Errorf(msgBodySignature, errUnverified, g.GetHeader())
	}
	body := object(in.body)
	hook := &webhook{reason: text(body, "reason", "message"), body: body}
	isTimed := g.TimestampHeader != ""
	if !isTimed {
		// A time in a format other than RFC 3339 would be ambiguous.
		signedAt, err := time.Parse(time.RFC3339, text(body, "timestamp"))
		at, isTimed = signedAt, err == nil
	}
	if isTimed {
		if err := mustBeRecent(at, in.now); err != nil {
			return nil, err
		}
	}
	delivery := digestOf(in.body)
	if start != "" {
		delivery = digestOf([]byte(start + delivery))
	}
	if isTimed || in.header.Get(deliveryHeader) != "" {
		hook.delivery = delivery
	} else {
		hook.repeats = delivery
	}
	return hook, nil
}
