package v1alpha1_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "0s": 0, "1h0m0.000001s": time.Hour + time.Microsecond,
		"3d": 3 * day, "2w": 14 * day, "0d": 0, "0012d": 12 * day, "9999w": 69993 * day,
	} {
		var d v1alpha1.Duration
		if err := json.Unmarshal([]byte(`"`+text+`"`), &d); err != nil || d != (v1alpha1.Duration{Duration: want}) {
			t.Errorf("%q decodes as %#v, %v, want %s", text, d, err, want)
		}
		if got, err := v1alpha1.ParseDuration(text); got != want || err != nil {
			t.Errorf("%q parses as %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestInvalidDurationDecodesAsNegative(t *testing.T) {
	for _, value := range []string{
		`""`, `"0"`, `"1"`, `"-1h"`, `"+1h"`, `"1d12h"`, `"1.5d"`, `"10000d"`, `"3 d"`, `" 3d"`, `"1y"`, `"5us"`, `"999999999h"`, `"long"`, `5`, `1.5`, `true`, `{"a":1}`, `["1h"]`,
	} {
		var object struct{ Before, After v1alpha1.Duration }
		if err := json.Unmarshal([]byte(`{"before":`+value+`,"after":"1h"}`), &object); err != nil {
			t.Fatalf("%s stops the decoder: %v", value, err)
		}
		if object.Before.Duration >= 0 || object.After.Duration != time.Hour {
			t.Errorf("%s decodes as %#v", value, object)
		}
		var text string
		if json.Unmarshal([]byte(value), &text) != nil {
			text = value
		}
		if _, err := v1alpha1.ParseDuration(text); err == nil || object.Before.String() != text {
			t.Errorf("%s parses without error, or is written as %s", value, object.Before)
		}
	}
}

func TestDurationIsEncodedAsItIsDecoded(t *testing.T) {
	for _, d := range []time.Duration{0, 1, time.Microsecond, time.Millisecond, time.Second + 1, time.Hour, 1000 * time.Hour, math.MaxInt64} {
		data, err := json.Marshal(v1alpha1.Duration{Duration: d})
		if err != nil {
			t.Fatal(err)
		}
		var got v1alpha1.Duration
		if err := json.Unmarshal(data, &got); err != nil || got.Duration != d {
			t.Errorf("%s is %s after %s, %v", d, got, data, err)
		}
	}
}

func TestDurationOr(t *testing.T) {
	if got := (*v1alpha1.Duration)(nil).Or(time.Hour); got != time.Hour {
		t.Errorf("no duration is %s", got)
	}
	var invalid v1alpha1.Duration
	if err := json.Unmarshal([]byte(`"x"`), &invalid); err != nil || invalid.Or(time.Hour) != time.Hour {
		t.Errorf("an invalid duration is %s, %v", invalid.Or(time.Hour), err)
	}
	if got := v1alpha1.NewDuration(time.Minute).Or(time.Hour); got != time.Minute {
		t.Errorf("a minute is %s", got)
	}
}
