/*
Package tz has the one copy of the IANA time zone database that the controller and
kubectl-gate use, compiled in. The zone files of an image or a laptop count for
nothing, so that a preview and the cluster cannot disagree about a zone.

"make zones" takes the data from a release of Go: its folder lib/time names the version and has the
zones with their whole history. IANA's data is in the public domain.
*/
package tz

import (
	"archive/zip"
	_ "embed" // the data
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed zoneinfo.zip
var zoneinfo string

//go:embed version.txt
var version string

var files = sync.OnceValue(func() *zip.Reader {
	r, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		panic(fmt.Sprintf("the zone data that is compiled in: %v", err))
	}
	return r
})

// Version returns the version of the database, such as 2025c.
func Version() string { return strings.TrimSpace(version) }

// Names returns the names of all zones, sorted.
func Names() []string {
	var names []string
	for _, f := range files().File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}

// loaded has zones by their names. There are a few hundred.
var loaded sync.Map

// Load returns a zone by its name, which is one of [Names] to the letter. Unlike for
// [time.LoadLocation] neither "" nor "Local" is one. A zone is read once per process.
func Load(name string) (*time.Location, error) {
	if known, ok := loaded.Load(name); ok {
		return known.(*time.Location), nil
	}
	data, err := fs.ReadFile(files(), name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q", name) // and not remembered: there is no end of such names
	}
	name = strings.Clone(name)                          // it may be a part of a large text
	loc, err := time.LoadLocationFromTZData(name, data) //nolint:forbidigo // this is where zones come from
	if err != nil {
		return nil, err
	}
	known, _ := loaded.LoadOrStore(name, loc)
	return known.(*time.Location), nil
}
