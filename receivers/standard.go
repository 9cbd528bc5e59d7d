package receivers

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Headers of Standard Webhooks, https://github.com/standard-webhooks/standard-webhooks.
const (
	standardIDHeader        = "webhook-id"
	standardTimeHeader      = "webhook-timestamp"
	standardSignatureHeader = "webhook-signature"
)

const (
	standardSecretPrefix = "whsec_"
	// minStandardKeyBytes is the minimum length of a key according to the specification.
	minStandardKeyBytes = 24
)

// signingKey returns the key in a Standard Webhooks secret. The error does not quote the secret.
func signingKey(secret string) ([]byte, error) {
	encoded, found := strings.CutPrefix(secret, standardSecretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(key) < minStandardKeyBytes {
		return nil, fmt.Errorf(msgSigningToken, standardSecretPrefix, minStandardKeyBytes)
	}
	return key, nil
}

// signingKeys returns the keys in Standard Webhooks secrets. The key of an invalid secret is nil.
func signingKeys(secrets []string) (keys [][]byte, err error) {
	for _, secret := range secrets {
		key, wrong := signingKey(secret)
		err = errors.Join(err, wrong)
		keys = append(keys, key)
	}
	return keys, err
}

// verifyStandard verifies a symmetric signature of Standard Webhooks. The delivery is derived from the ID of the webhook, which is signed
// and does not change if the sender tries again.
func verifyStandard(in *incoming, secrets []string) (delivery string, err error) {
	var sums [][]byte
	for _, signature := range listed(only(in.header, standardSignatureHeader), " ") {
		digest, found := strings.CutPrefix(signature, "v1,")
		if sum, err := base64.StdEncoding.Strict().DecodeString(digest); found && err == nil {
			sums = append(sums, sum)
		}
	}
	id, stamp := only(in.header, standardIDHeader), only(in.header, standardTimeHeader)
	at, isTime := unixTime(stamp)
	// An ID with a dot could contain a part of the time or of the body, with the same signature.
	isID := id != "" && !strings.Contains(id, ".")
	keys, _ := signingKeys(secrets) // the key of a wrong secret is nil and never matches
	if !matches(sha256.New, keys, sums, []byte(id+"."+stamp+"."), in.body) || !isTime || !isID {
		return "", fmt.Errorf(msgWebhookSignature, errUnverified, standardSignatureHeader)
	}
	return digestOf([]byte(standardIDHeader + "\x00" + id)), mustBeRecent(at, in.now)
}

// standardWebhooks accepts any request that is signed as specified by Standard Webhooks. In a JSON object, the field type is the event,
// and the field reason or message is the reason.
type standardWebhooks struct{}

func (standardWebhooks) verify(_ context.Context, in *incoming) (*webhook, error) {
	delivery, err := verifyStandard(in, in.keys())
	if err != nil {
		return nil, err
	}
	body := object(in.body)
	return &webhook{event: text(body, "type"), reason: text(body, "reason", "message", "type"), delivery: delivery, body: body}, nil
}
