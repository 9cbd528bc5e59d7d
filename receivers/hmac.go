package receivers

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // HMAC with SHA-1 is sound, and old senders have nothing else.
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"
)

const (
	signatureHeader = "X-Signature"
	// deliveryHeader tells apart two equal bodies of generic-hmac from one that was sent
	// twice. It is optional and not signed: the body is what is remembered.
	deliveryHeader = "X-Delivery-Id"
)

// maxTokens is how many tokens a receiver may have: the current one and the one before.
const maxTokens = 2

var hashes = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

// signed says whether a signature, <algorithm>=<hex>, is the HMAC of the body with one of
// the tokens and one of the algorithms. It always computes the same number of HMACs, so
// that the time does not tell what was wrong, or which token it was. An empty token never
// matches.
func signed(signature string, body []byte, tokens []string, algorithms ...string) bool {
	name, digest, _ := strings.Cut(signature, "=")
	sum, err := hex.DecodeString(digest)
	right := err == nil && slices.Contains(algorithms, name)
	if !right {
		name = algorithms[0]
	}
	found := false
	for i := range max(len(tokens), maxTokens) {
		token := ""
		if i < len(tokens) {
			token = tokens[i]
		}
		mac := hmac.New(hashes[name], []byte(token))
		mac.Write(body)
		if hmac.Equal(sum, mac.Sum(nil)) && token != "" && right {
			found = true
		}
	}
	return found
}

// genericHMAC takes any request whose body is signed in X-Signature. A JSON object may
// say why in reason or message, and in timestamp when it was signed.
type genericHMAC struct{}

func (genericHMAC) verify(_ context.Context, in *incoming) (*webhook, error) {
	if !signed(only(in.header, signatureHeader), in.body, in.tokens, "sha256", "sha512", "sha1") {
		return nil, fmt.Errorf("%w: %s is not the signature of the body", errUnverified, signatureHeader)
	}
	body := object(in.body)
	hook := &webhook{reason: text(body, "reason", "message"), body: body}
	// A time in another format than RFC 3339 may mean anything.
	at, err := time.Parse(time.RFC3339, text(body, "timestamp"))
	dated := err == nil
	if dated {
		if err := mustBeRecent(at, in.now); err != nil {
			return nil, err
		}
	}
	if dated || in.header.Get(deliveryHeader) != "" {
		hook.delivery = digestOf(in.body)
	} else {
		hook.repeats = digestOf(in.body)
	}
	return hook, nil
}
