package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32

// Duration is a Go duration, such as 1h30m, or a number of whole days or
// weeks, such as 3d or 2w. The two forms cannot be combined. A day is always
// 24 hours.
type Duration struct {
	time.Duration `json:"-"`

	// Invalid is the text that ParseDuration rejects, empty if the value is valid.
	// Duration is then negative, which no field allows, so that validation fails.
	// Decoding itself does not fail, because one invalid object would stop the
	// informer.
	Invalid string `json:"-"`
}

// invalidDuration is the Duration of a value that ParseDuration rejects.
const invalidDuration time.Duration = -1

var (
	goDuration  = regexp.MustCompile(`^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$`)
	wholePeriod = regexp.MustCompile(`^([0-9]{1,4})([dw])$`)
)

// ParseDuration parses a duration in a spec, an annotation or a flag. It
// accepts a Go duration without a sign in the units ms, s, m and h, or a
// number of whole days or weeks.
func ParseDuration(text string) (time.Duration, error) {
	if found := wholePeriod.FindStringSubmatch(text); found != nil {
		n, err := strconv.Atoi(found[1])
		if found[2] == "w" {
			n *= 7
		}
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || !goDuration.MatchString(text) {
		return 0, fmt.Errorf("%q is not a duration: write 30m, 1h30m, 3d or 2w", text)
	}
	return d, nil
}

// NewDuration returns a pointer to a Duration, for optional fields.
func NewDuration(d time.Duration) *Duration { return &Duration{Duration: d} }

// Or returns the duration, or fallback if d is nil or not positive.
func (d *Duration) Or(fallback time.Duration) time.Duration {
	if d == nil || d.Duration <= 0 {
		return fallback
	}
	return d.Duration
}

// String returns the duration in a form that ParseDuration accepts. An invalid
// value is returned unchanged.
func (d Duration) String() string {
	switch {
	case d.Duration == invalidDuration:
		return d.Invalid
	case d.Duration > 0 && d.Duration < time.Millisecond:
		return strconv.FormatFloat(d.Seconds(), 'f', 9, 64) + "s"
	}
	return d.Duration.String()
}

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON implements json.Unmarshaler. It never fails, see Invalid.
func (d *Duration) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if json.Unmarshal(data, &text) != nil {
		text = strings.TrimSpace(string(data))
	}
	parsed, err := ParseDuration(text)
	if *d = (Duration{Duration: parsed}); err != nil {
		*d = Duration{Duration: invalidDuration, Invalid: text}
	}
	return nil
}
