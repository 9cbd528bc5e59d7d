package tz_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// asChild is an environment variable with which the test program prints its UTC offsets instead of running tests.
const asChild = "TZ_TEST_AS_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(asChild) != "" {
		fmt.Println(offsets())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// offsets returns the UTC offset of New York in summer, from this package and from the machine.
func offsets() string {
	summer := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	offset := func(loc *time.Location, err error) string {
		if err != nil {
			return err.Error()
		}
		_, seconds := summer.In(loc).Zone()
		return fmt.Sprint(seconds)
	}
	return offset(tz.Load("America/New_York")) + " " + offset(time.LoadLocation("America/New_York")) //nolint:forbidigo // to compare with
}

func TestLoadDoesNotReadHostTimeZones(t *testing.T) {
	for name, on := range tztest.Machines(t) {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0])
			c.Env = append(os.Environ(), asChild+"=yes")
			on(c)
			out, err := c.CombinedOutput()
			want := fmt.Sprintf("%d %d", -4*60*60, tztest.Offset)
			if got := strings.TrimSpace(string(out)); err != nil || got != want {
				t.Errorf("the offsets of New York here and on the machine are %s, want %s: %v", got, want, err)
			}
		})
	}
}

func TestAllGoZonesExist(t *testing.T) {
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	with, err := tz.Open(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range with.Names() {
		if _, err := tz.Load(name); err != nil {
			t.Error(err)
		}
	}
	if !regexp.MustCompile(`^sha256-[0-9a-f]{12}$`).MatchString(with.Version) || !with.Released.IsZero() {
		t.Errorf("the data of Go has no version, got %s of %s", with.Version, with.Released)
	}
}

// TestZoneChangesOf2026 checks UTC offsets that differ from those of 2025c.
func TestZoneChangesOf2026(t *testing.T) {
	winter := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string]int{"America/Vancouver": -7, "America/Edmonton": -6, "America/Winnipeg": -5, "America/Havana": -4, "Africa/Casablanca": 0} {
		loc, err := tz.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, offset := winter.In(loc).Zone(); offset != want*60*60 {
			t.Errorf("%s has the UTC offset %ds, want %dh", name, offset, want)
		}
	}
}

func TestVersionAndDate(t *testing.T) {
	if got := tz.Version(); !regexp.MustCompile(`^20[0-9]{2}[a-z]$`).MatchString(got) || got < "2026f" {
		t.Errorf("version %q", got)
	}
	if released := tz.Released(); released.Format("2006") < tz.Version()[:4] {
		t.Errorf("%s was released on %s", tz.Version(), released)
	}
	if d, err := tz.Open("zoneinfo.zip"); err != nil || d.Version != tz.Version() || !d.Released.Equal(tz.Released()) {
		t.Errorf("zoneinfo.zip is %+v, %v", d, err)
	}
}

func TestNames(t *testing.T) {
	names := tz.Names()
	if len(names) < 590 || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("%d names, sorted is %t", len(names), slices.IsSorted(names))
	}
	for _, name := range []string{"UTC", "Europe/Oslo", "America/Argentina/ComodRivadavia", "Etc/GMT+12", "EST5EDT", "Asia/Calcutta"} {
		if !slices.Contains(names, name) {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range names {
		if loc, err := tz.Load(name); err != nil || loc.String() != name {
			t.Errorf("%s is %s, %v", name, loc, err)
		}
		// The API server reads anything with a colon as an offset.
		if name[0] < 'A' || name[0] > 'Z' || strings.ContainsAny(name, ": ") || len(name) > 64 {
			t.Errorf("%q is a name that the definitions of Gates refuse", name)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, name := range []string{
		"", "Local", "local", "localtime", "utc", "europe/oslo", "Europe", "Europe/", "Europe/Oslo/", "/Europe/Oslo", "./UTC", "Europe/../UTC",
		"Europe//Oslo", `Europe\Oslo`, "/etc/localtime", "../zoneinfo.zip", "UTC\x00", "+02:00", "posix/UTC", "right/UTC",
	} {
		if loc, err := tz.Load(name); err == nil || loc != nil || err.Error() != fmt.Sprintf("unknown time zone %q", name) {
			t.Errorf("%q is %v, %v", name, loc, err)
		}
	}
}

func TestZoneIsReadOnce(t *testing.T) {
	first, err := tz.Load("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if again, err := tz.Load("Europe/Oslo"); again != first || err != nil {
			t.Errorf("it is another one, %v", err)
		}
	}
	// An expression in a receiver may load a zone in a loop.
	if allocations := testing.AllocsPerRun(100, func() { _, _ = tz.Load("Europe/Oslo") }); allocations > 1 {
		t.Errorf("to load it again makes %v allocations", allocations)
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"Europe/Oslo", "Europe/Atlantis"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = tz.Load(name)
			}
		})
	}
}
