package activation

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

var (
	open   = When{Open: true, Margin: day}
	closed = When{Margin: day}
	strict = When{Margin: day, Strict: true}
)

func TestDecide(t *testing.T) {
	first, second := issue(1, -30*day, 30*day), issue(2, -time.Hour, 60*day)
	brief := issue(3, -3*time.Hour, 3*time.Hour) // a sixth of its life is an hour
	shorter, later, ended := issue(4, -day, 20*day), issue(5, 2*day, 90*day), issue(6, -60*day, -time.Second)
	byHand := &Secret{Type: TLSType, Data: first}
	rolledBack := liveSecret(second)
	rolledBack.Data = first
	stripped := &Secret{Type: TLSType, Data: second}
	placeholder := &Secret{Type: TLSType, Data: map[string][]byte{CertKey: {}, PrivateKeyKey: {}}}
	frozen := liveSecret(second)
	frozen.Immutable = true

	for name, tc := range map[string]struct {
		staged, live *Secret
		when         When
		at           time.Duration
		want         Outcome
		early        bool
		recheck      time.Duration
	}{
		"nothing is issued yet":                         {nil, nil, open, 0, NotIssued, false, 0},
		"nothing is issued yet, something is in use":    {nil, byHand, open, 0, NotIssued, false, 0},
		"the first certificate, open":                   {stagedSecret(first), nil, open, 0, Promote, false, 0},
		"the first certificate, closed":                 {stagedSecret(first), nil, closed, 0, Closed, false, 0},
		"the first certificate, strict":                 {stagedSecret(first), nil, strict, 0, Closed, false, 0},
		"a live secret made by hand, open":              {stagedSecret(second), byHand, open, 0, Promote, false, 0},
		"a live secret made by hand, closed":            {stagedSecret(second), byHand, closed, 0, Closed, false, 29 * day},
		"a live secret without a certificate, open":     {stagedSecret(second), placeholder, open, 0, Promote, false, 0},
		"a live secret without a certificate, closed":   {stagedSecret(second), placeholder, closed, 0, Closed, false, 0},
		"a renewal goes straight through":               {stagedSecret(second), liveSecret(first), open, 0, Promote, false, 0},
		"a renewal waits":                               {stagedSecret(second), liveSecret(first), closed, 0, Closed, false, 29 * day},
		"a renewal a moment before the margin":          {stagedSecret(second), liveSecret(first), closed, 29*day - 1, Closed, false, 29 * day},
		"a renewal at the margin":                       {stagedSecret(second), liveSecret(first), closed, 29 * day, Promote, true, 0},
		"a renewal within the margin":                   {stagedSecret(second), liveSecret(first), closed, 29*day + time.Hour, Promote, true, 0},
		"a renewal after the end of what is in use":     {stagedSecret(second), liveSecret(first), closed, 31 * day, Promote, true, 0},
		"a renewal within the margin, strict":           {stagedSecret(second), liveSecret(first), strict, 30 * day, Closed, false, 0},
		"the margin is a sixth of the lifetime":         {stagedSecret(second), liveSecret(brief), closed, 0, Closed, false, 2 * time.Hour},
		"at a sixth of the lifetime":                    {stagedSecret(second), liveSecret(brief), closed, 2 * time.Hour, Promote, true, 0},
		"a renewal that ends before what is in use":     {stagedSecret(shorter), liveSecret(first), closed, 29 * day / 2, Closed, false, 0},
		"it is promoted all the same once it is open":   {stagedSecret(shorter), liveSecret(first), open, 0, Promote, false, 0},
		"not yet valid":                                 {stagedSecret(later), liveSecret(first), open, 0, NotYetValid, false, 2 * day},
		"not yet valid, a moment before":                {stagedSecret(later), liveSecret(first), open, 2*day - 1, NotYetValid, false, 2 * day},
		"valid at last":                                 {stagedSecret(later), liveSecret(first), open, 2 * day, Promote, false, 0},
		"not yet valid, nothing in use":                 {stagedSecret(later), nil, open, 0, NotYetValid, false, 2 * day},
		"not yet valid and within the margin":           {stagedSecret(later), liveSecret(brief), closed, 2*time.Hour + 1, NotYetValid, false, 2 * day},
		"at its end":                                    {stagedSecret(first), nil, open, 30 * day, Promote, false, 0},
		"after its end":                                 {stagedSecret(first), nil, open, 30*day + 1, Refused, false, 0},
		"ended, closed":                                 {stagedSecret(ended), liveSecret(first), closed, 0, Refused, false, 0},
		"in use":                                        {stagedSecret(second), liveSecret(second), open, 0, Activated, false, 0},
		"in use, closed":                                {stagedSecret(second), liveSecret(second), closed, 0, Activated, false, 0},
		"in use until it ends":                          {stagedSecret(second), liveSecret(second), closed, 70 * day, Activated, false, 0},
		"in use, and made immutable since":              {stagedSecret(second), frozen, open, 0, Activated, false, 0},
		"gone, open":                                    {stagedSecret(second), nil, open, 0, Promote, false, 0},
		"rolled back, open":                             {stagedSecret(second), rolledBack, open, 0, RolledBack, false, 0},
		"rolled back to what is about to end":           {stagedSecret(second), rolledBack, closed, 30 * day, RolledBack, false, 0},
		"rolled back, and issued again":                 {stagedSecret(shorter), rolledBack, open, 0, Promote, false, 0},
		"the annotations are gone, open":                {stagedSecret(second), stripped, open, 0, Promote, false, 0},
		"the annotations are gone, closed":              {stagedSecret(second), stripped, closed, 0, Closed, false, 0},
		"another format alone is a reason":              {stagedSecret(with(second, "key.der", []byte{1})), liveSecret(second), open, 0, Promote, false, 0},
		"cert-manager has signed for the time being":    {stagedSecret(temporary()), nil, open, 0, NotIssued, false, 0},
		"the same while something is about to end":      {stagedSecret(temporary()), liveSecret(brief), closed, 3 * time.Hour, NotIssued, false, 0},
		"the margin of a Gate that has none is nothing": {stagedSecret(second), liveSecret(first), When{}, 30*day - 1, Closed, false, 30 * day},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(names, us, tc.staged, tc.live, tc.when, start.Add(tc.at))
			if got.Outcome != tc.want || got.Early != tc.early {
				t.Errorf("outcome %d, early %v (%s), want %d, %v", got.Outcome, got.Early, got.Message, tc.want, tc.early)
			}
			recheck := time.Time{}
			if tc.recheck != 0 {
				recheck = start.Add(tc.recheck)
			}
			if !got.Recheck.Equal(recheck) {
				t.Errorf("recheck %s, want %s", got.Recheck, recheck)
			}
			if (got.Message != "") != (tc.want == Refused) {
				t.Errorf("message %q", got.Message)
			}
		})
	}
}

// temporary is what cert-manager signs itself until the issuer has signed, see
// GenerateLocallySignedTemporaryCertificate of cert-manager.
func temporary() map[string][]byte {
	cert, issuer := template(7, -time.Hour, 90*day), template(8, -time.Hour, 90*day)
	cert.Subject.SerialNumber = "1234567890"
	issuer.Subject = pkix.Name{CommonName: "cert-manager.local"}
	return sign(cert, issuer)
}

func TestDecideRefuses(t *testing.T) {
	good, other := issue(1, -day, 30*day), issue(2, -day, 30*day)
	live := func(change func(*Secret)) *Secret {
		s := liveSecret(other)
		change(s)
		return s
	}
	fromAnother := stagedSecret(good)
	fromAnother.Annotations[CertificateNameAnnotation] = "mail"
	byHand := stagedSecret(good)
	byHand.Annotations = nil
	as := func(staged, live string) Names { return Names{Certificate: "web", Staged: staged, Live: live} }

	for name, tc := range map[string]struct {
		names        Names
		staged, live *Secret
		cause        string
	}{
		"no certificate":            {names, stagedSecret(with(good, CertKey, nil)), nil, "Secret 'web-staged' has no tls.crt"},
		"an empty certificate":      {names, stagedSecret(with(good, CertKey, []byte{})), nil, "Secret 'web-staged' has no tls.crt"},
		"no key":                    {names, stagedSecret(with(good, PrivateKeyKey, nil)), nil, "Secret 'web-staged' has no tls.key"},
		"no PEM":                    {names, stagedSecret(with(good, CertKey, []byte("hello"))), nil, "a tls.crt that cannot be read"},
		"a key for a certificate":   {names, stagedSecret(with(good, CertKey, good[PrivateKeyKey])), nil, "a tls.crt that cannot be read"},
		"a broken certificate":      {names, stagedSecret(with(good, CertKey, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))), nil, "a tls.crt that cannot be read"},
		"no PEM for a key":          {names, stagedSecret(with(good, PrivateKeyKey, []byte("hello"))), nil, "a tls.key that does not match its tls.crt"},
		"the key of another":        {names, stagedSecret(with(good, PrivateKeyKey, other[PrivateKeyKey])), nil, "a tls.key that does not match its tls.crt"},
		"an empty name":             {as("web-staged", ""), stagedSecret(good), nil, "'' cannot be the name of a Secret"},
		"a name with a namespace":   {as("web-staged", "shop/web-tls"), stagedSecret(good), nil, "'shop/web-tls' cannot be the name of a Secret"},
		"a name in capitals":        {as("web-staged", "Web"), stagedSecret(good), nil, "'Web' cannot be the name of a Secret"},
		"a name that is too long":   {as("web-staged", strings.Repeat("a", 245)), stagedSecret(good), nil, "at most 244 characters"},
		"its own staged secret":     {as("web-tls", "web-tls"), stagedSecret(good), nil, "activate into another Secret"},
		"staged where previous is":  {as("web-tls-previous", "web-tls"), stagedSecret(good), nil, "choose another spec.secretName"},
		"no secretName":             {as("", "web-tls"), nil, nil, "spec.secretName is missing"},
		"staged by nobody":          {names, byHand, nil, "Secret 'web-staged' was not issued for Certificate 'web'"},
		"staged by another":         {names, fromAnother, nil, "Secret 'web-staged' was not issued for Certificate 'web'"},
		"the secret of another":     {names, stagedSecret(good), live(func(s *Secret) { s.Annotations[CertificateNameAnnotation] = "mail" }), "Secret 'web-tls' belongs to Certificate 'mail'"},
		"a secret of cert-manager":  {names, stagedSecret(good), live(func(s *Secret) { s.Labels = map[string]string{certManagerLabel: "true"} }), "Secret 'web-tls' belongs to cert-manager"},
		"another activates into it": {names, stagedSecret(good), live(func(s *Secret) { s.Annotations[us.Certificate] = "mail" }), "Certificate 'mail' activates into Secret 'web-tls'"},
		"it is controlled":          {names, stagedSecret(good), live(func(s *Secret) { s.Controller = "SealedSecret 'web'" }), "Secret 'web-tls' is controlled by SealedSecret 'web'"},
		"it is immutable":           {names, stagedSecret(good), live(func(s *Secret) { s.Immutable = true }), "Secret 'web-tls' is immutable"},
		"it is of another type":     {names, stagedSecret(good), live(func(s *Secret) { s.Type = "Opaque" }), "Secret 'web-tls' is of type Opaque"},
		"in use, but taken over":    {names, stagedSecret(other), live(func(s *Secret) { s.Annotations[CertificateNameAnnotation] = "mail" }), "Secret 'web-tls' belongs to Certificate 'mail'"},
		"foreign before its issued": {names, nil, live(func(s *Secret) { s.Controller = "SealedSecret 'web'" }), "Secret 'web-tls' is controlled by SealedSecret 'web'"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, when := range []When{open, closed, strict} {
				got := Decide(tc.names, us, tc.staged, tc.live, when, start)
				if got.Outcome != Refused || !strings.Contains(got.Message, tc.cause) || !got.Recheck.IsZero() {
					t.Errorf("%+v: outcome %d, %q, recheck %s; want %q", when, got.Outcome, got.Message, got.Recheck, tc.cause)
				}
			}
		})
	}
}

func TestTrimKeepsNeededFields(t *testing.T) {
	first, second := issue(1, -day, 30*day), issue(2, -day, 60*day)
	stripped := &Secret{Type: TLSType, Data: second}
	for name, tc := range map[string]struct {
		live *Secret
		want map[string][]byte
	}{
		"nothing if there is nothing":         {nil, nil},
		"what is in use":                      {liveSecret(first), first},
		"what somebody made by hand":          {&Secret{Type: TLSType, Data: first}, first},
		"nothing if the same is in use":       {stripped, nil},
		"what somebody changed in between":    {&Secret{Type: TLSType, Data: with(first, "a", []byte("b")), Annotations: liveSecret(first).Annotations}, with(first, "a", []byte("b"))},
		"what differs by a key that vanishes": {&Secret{Type: TLSType, Data: with(second, "key.der", []byte{1})}, with(second, "key.der", []byte{1})},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Decide(names, us, stagedSecret(second), tc.live, open, start); got.Outcome != Promote || !Same(got.Previous, tc.want) {
				t.Errorf("outcome %d, kept %v", got.Outcome, got.Previous)
			}
		})
	}
}

func TestRefusePrevious(t *testing.T) {
	kept := func(change func(*Secret)) *Secret {
		s := &Secret{Type: TLSType, Annotations: map[string]string{us.Certificate: "web"}}
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		previous *Secret
		cause    string
	}{
		"there is none":             {nil, ""},
		"ours":                      {kept(func(*Secret) {}), ""},
		"made by another client":    {kept(func(s *Secret) { s.Annotations = nil }), "does not belong to the controller"},
		"that of another":           {kept(func(s *Secret) { s.Annotations[us.Certificate] = "mail" }), "Certificate 'mail' activates into Secret 'web-tls-previous'"},
		"another is issued into it": {kept(func(s *Secret) { s.Annotations[CertificateNameAnnotation] = "mail" }), "belongs to Certificate 'mail'"},
		"it is immutable":           {kept(func(s *Secret) { s.Immutable = true }), "'web-tls-previous' is immutable"},
		"it is of another type":     {kept(func(s *Secret) { s.Type = "Opaque" }), "'web-tls-previous' is of type Opaque"},
	} {
		t.Run(name, func(t *testing.T) {
			got := names.RefusePrevious(us, tc.previous)
			if (tc.cause == "") != (got == "") || !strings.Contains(got, tc.cause) {
				t.Errorf("got %q, want %q", got, tc.cause)
			}
		})
	}
}

func TestMessagesRevealNoKey(t *testing.T) {
	good := issue(1, -day, 30*day)
	secret := []byte("hunter2")
	for _, key := range []string{CertKey, PrivateKeyKey} {
		d := Decide(names, us, stagedSecret(with(good, key, secret)), nil, open, start)
		if strings.Contains(d.Message, string(secret)) {
			t.Errorf("%s: %s", key, d.Message)
		}
	}
}

func TestFingerprint(t *testing.T) {
	base := map[string][]byte{"a": []byte("bc"), "d": []byte("e")}
	for name, other := range map[string]map[string][]byte{
		"a value":                      {"a": []byte("bx"), "d": []byte("e")},
		"a key":                        {"x": []byte("bc"), "d": []byte("e")},
		"a key less":                   {"a": []byte("bc")},
		"what runs on in the next key": {"ab": []byte("c"), "d": []byte("e")},
		"what runs on in the value":    {"a": []byte("bcd"), "": []byte("e")},
	} {
		if Fingerprint(base) == Fingerprint(other) {
			t.Errorf("%s makes no difference", name)
		}
	}
	if Fingerprint(base) != Fingerprint(map[string][]byte{"d": []byte("e"), "a": []byte("bc")}) {
		t.Error("the order makes a difference")
	}
}

func TestLeafIsFirstCertificate(t *testing.T) {
	first, second := issue(0x0abc, -day, day), issue(2, -2*day, 2*day)
	chain := bytes.Join([][]byte{first[PrivateKeyKey], first[CertKey], second[CertKey]}, nil)
	leaf, err := leafOf(chain)
	if err != nil || leaf.Serial != "0ABC" || leaf.End() != "2026-11-24T12:00:00Z" {
		t.Errorf("got %+v, %v", leaf, err)
	}
}

func TestPatchIsCompleteAndConditional(t *testing.T) {
	have := Secret{Data: map[string][]byte{CertKey: []byte("old"), "key.der": {1}}, Labels: map[string]string{"team": "shop"}}
	want := Secret{Data: map[string][]byte{CertKey: []byte("new"), "keystore.p12": {2}}, Labels: map[string]string{"a": "b"}}
	patch, err := Patch("42", have, want)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(patch, &got); err != nil {
		t.Fatal(err)
	}
	if expected := map[string]any{
		"metadata": map[string]any{"resourceVersion": "42", "labels": map[string]any{"a": "b"}},
		"data":     map[string]any{CertKey: "bmV3", "key.der": nil, "keystore.p12": "Ag=="},
	}; !reflect.DeepEqual(got, expected) {
		t.Errorf("got %v\nwant %v", got, expected)
	}
}
