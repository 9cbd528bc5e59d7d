package receivers

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestNumbersKeepTheirValueAndType(t *testing.T) {
	const numbers = `{"id":9007199254740993,"least":-9223372036854775808,"most":18446744073709551615,"price":0.5,"whole":3.0,"big":1e3,
		"nested":{"list":[1,{"id":9007199254740995}]}}`
	flux := fluxBody(`"severity"`, `"id":9007199254740993,"nested":{"list":[1,{"id":9007199254740995}]},"severity"`)
	bodies := map[string]struct {
		verifier verifier
		in       *incoming
		filters  map[string]bool
	}{
		"generic-hmac": {genericHMAC{}, request(numbers, []string{testToken}, "X-Signature", signatureOf("sha256", sha256.New, testToken, []byte(numbers))), map[string]bool{
			"req.id == 9007199254740993":                                  true,
			"req.id == 9007199254740992":                                  false,
			"req.id > 9007199254740992":                                   true,
			"req.id + 1 == 9007199254740994":                              true,
			"string(req.id) == '9007199254740993'":                        true,
			"type(req.id) == int":                                         true,
			"req.least == -9223372036854775808":                           true,
			"req.most == 18446744073709551615u":                           true,
			"req.most == 18446744073709551614u":                           false,
			"type(req.price) == double && req.price < 1":                  true,
			"type(req.whole) == double && req.whole == 3":                 true,
			"type(req.big) == double && req.big == 1000":                  true,
			"req.nested.list[1].id == 9007199254740995":                   true,
			"req.nested.list.exists(n, n == 1)":                           true,
			"req.nested.list[1].id == 9007199254740996":                   false,
			"[9007199254740992, 9007199254740994].exists(n, n == req.id)": false,
		}},
		"flux-event": {fluxEvent{}, signedFlux(flux), map[string]bool{
			"req.id == 9007199254740993":                true,
			"req.id == 9007199254740992":                false,
			"req.nested.list[1].id == 9007199254740995": true,
		}},
	}
	for name, body := range bodies {
		hook := verified(t, body.verifier, body.in)
		for filter, want := range body.filters {
			for _, change := range []func(*v1alpha1.GateReceiverSpec){
				func(s *v1alpha1.GateReceiverSpec) { s.Action, s.Filter = v1alpha1.RequestOpen, filter },
				expr(fmt.Sprintf("%s ? 'open' : ''", filter)),
			} {
				e, err := compile(receiverOf("smoke", "apps", change))
				if err != nil {
					t.Fatal(err)
				}
				got, err := e.decide(t.Context(), body.in.header, hook)
				if err != nil || (got.action == v1alpha1.RequestOpen) != want {
					t.Errorf("%s, %s: got %q, %v", name, filter, got.action, err)
				}
			}
		}
	}
}
