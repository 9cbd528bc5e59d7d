package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// The test setup breaks the time zones of the machine for the controller.
func TestControllerDoesNotReadHostTimeZones(t *testing.T) {
	w := newWorld(t)
	start, end := "12:00", "12:30"
	w.Gate("noon", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, TimeZone: "America/New_York",
		OpenPeriods: []v1alpha1.Period{{Name: "noon", Start: &start, End: &end}},
	})
	location, err := tz.Load("America/New_York")
	w.Must(err)
	w.Eventually("the next transition is in the status", func() error {
		gate := &v1alpha1.Gate{}
		if err := w.Client.Get(w.Context(), w.Key("noon"), gate); err != nil {
			return err
		}
		if gate.Status.NextTransition == nil {
			return errors.New("there is no next transition")
		}
		at := gate.Status.NextTransition.At.In(location).Format(time.TimeOnly)
		if at != "12:00:00" && at != "12:30:00" {
			w.Fatalf("the next transition is at %s in New York", at)
		}
		return nil
	})
}

func TestVersionNamesTimeZoneData(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), cluster.ControllerBinary(), "--version").CombinedOutput()
	if got := string(out); err != nil || !strings.HasPrefix(got, "gating-controller ") || !strings.HasSuffix(got, ", time zone data "+tz.Version()+"\n") {
		t.Errorf("%v: %s", err, got)
	}
}
