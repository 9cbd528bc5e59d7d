package receivers

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// only returns the value of a header that occurs once, otherwise an empty text. If a header occurs twice, a proxy in front of this server
// may have used the other value.
func only(header http.Header, name string) string {
	if values := header.Values(name); len(values) == 1 {
		return values[0]
	}
	return ""
}

// bearer returns the token in Authorization, empty if there is none.
func bearer(header http.Header) string {
	scheme, token, _ := strings.Cut(only(header, "Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}

// mustObject returns the JSON object in a body. It returns errMalformed if the body is anything else.
func mustObject(body []byte) (map[string]any, error) {
	fields, err := parseObject(body)
	if err != nil || fields == nil {
		return nil, fmt.Errorf(msgBodyObject, errMalformed)
	}
	return fields, nil
}

// textAt returns the text at a path of nested fields, empty if there is none.
func textAt(fields map[string]any, path ...string) string {
	last := len(path) - 1
	for _, name := range path[:last] {
		fields, _ = fields[name].(map[string]any)
	}
	return text(fields, path[last])
}

// phrase returns the prefix and the first line of a text. It is empty if the text is empty.
func phrase(prefix, value string) string {
	value = strings.TrimSpace(value)
	if end := strings.IndexAny(value, "\r\n"); end >= 0 {
		value = value[:end]
	}
	if value == "" {
		return ""
	}
	return prefix + value
}

// mustBeRecent returns an error if a signed time is too far from now. The specific error reveals no secret, because a client that has the
// signature knows that it is valid. A sender with a wrong clock must learn the cause.
func mustBeRecent(at, now time.Time) error {
	if now.Sub(at).Abs() >= signedTimeTolerance {
		return fmt.Errorf(msgNotRecent, errMalformed, signedTimeTolerance)
	}
	return nil
}
