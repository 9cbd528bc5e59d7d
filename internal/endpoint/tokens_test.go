package endpoint

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// secret is an API server with one Secret.
type secret struct {
	client.Reader
	data map[string]string
}

func (s secret) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	read := obj.(*corev1.Secret) //nolint:forcetypeassert // nothing else is read
	read.Data = map[string][]byte{}
	for key, value := range s.data {
		read.Data[key] = []byte(value)
	}
	return nil
}

func TestReadCredentials(t *testing.T) {
	key := types.NamespacedName{Namespace: "apps", Name: "ci"}
	for name, tc := range map[string]struct {
		data            map[string]string
		tokens, signing []string
		paths, keys     []string
		refused         string
	}{
		"one token":                     {data: map[string]string{"token": "a"}, tokens: []string{"a"}, paths: []string{"a"}, keys: []string{"a"}},
		"a newline at the end":          {data: map[string]string{"token": "a\n"}, tokens: []string{"a"}, paths: []string{"a"}, keys: []string{"a"}},
		"white space around all":        {data: map[string]string{"token": " a\r\n", "previousToken": "\tb\n", "signingToken": "c \n", "previousSigningToken": "\nd"}, tokens: []string{"a", "b"}, signing: []string{"c", "d"}, paths: []string{"a", "b"}, keys: []string{"c", "d"}},
		"the same token twice":          {data: map[string]string{"token": "a", "previousToken": "a\n"}, tokens: []string{"a"}, paths: []string{"a"}, keys: []string{"a"}},
		"an empty previous token":       {data: map[string]string{"token": "a", "previousToken": ""}, tokens: []string{"a"}, paths: []string{"a"}, keys: []string{"a"}},
		"a signing token alone":         {data: map[string]string{"signingToken": "c", "previousSigningToken": "d"}, signing: []string{"c", "d"}, paths: []string{"c", "d"}, keys: []string{"c", "d"}},
		"both kinds":                    {data: map[string]string{"token": "a", "signingToken": "c"}, tokens: []string{"a"}, signing: []string{"c"}, paths: []string{"a"}, keys: []string{"c"}},
		"nothing":                       {refused: "required field 'token'"},
		"an empty token":                {data: map[string]string{"token": ""}, refused: "required field 'token'"},
		"a token of white space":        {data: map[string]string{"token": " \t\r\n"}, refused: "field 'token' has only white space"},
		"a previous one of white space": {data: map[string]string{"token": "a", "previousToken": "\n"}, refused: "field 'previousToken' has only white space"},
		"a signing token of newlines":   {data: map[string]string{"token": "a", "signingToken": "\n\n"}, refused: "field 'signingToken' has only white space"},
		"a previous token alone":        {data: map[string]string{"previousToken": "b", "signingToken": "c"}, refused: "field 'previousToken' needs field 'token'"},
		"a previous signing token":      {data: map[string]string{"token": "a", "previousSigningToken": "d"}, refused: "field 'previousSigningToken' needs field 'signingToken'"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadCredentials(t.Context(), secret{data: tc.data}, key, "config/webhooks")
			if tc.refused != "" {
				refused := (*Refused)(nil)
				if !errors.As(err, &refused) || refused.Reason() != v1alpha1.TokenNotFoundReason || err.Error() != "invalid 'apps/ci' secret data: "+tc.refused {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil || !got.Equal(Credentials{tc.tokens, tc.signing}) || !slices.Equal(got.PathTokens(), tc.paths) || !slices.Equal(got.SigningKeys(), tc.keys) {
				t.Errorf("got %q, paths of %q, keys %q, %v", got, got.PathTokens(), got.SigningKeys(), err)
			}
		})
	}
}

func TestTokensRequiresTokenInAdditionToSigningToken(t *testing.T) {
	key := types.NamespacedName{Namespace: "apps", Name: "calendar"}
	if got, err := Tokens(t.Context(), secret{data: map[string]string{"token": "a\n"}}, key, "config/calendar-feed"); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Tokens(t.Context(), secret{data: map[string]string{"signingToken": "c"}}, key, "config/calendar-feed"); err == nil || !strings.Contains(err.Error(), "required field 'token'") {
		t.Errorf("error is %v", err)
	}
}
