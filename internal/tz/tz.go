/*
Package tz is the IANA time zone database of the controller and of kubectl-gate. It is compiled in, and [Use] replaces it with newer data
when a program starts. The zone files of an image or of a laptop are not read, so a preview and the cluster agree about a zone.

"make zones" builds zoneinfo.zip from Debian's package tzdata, with the whole history of each zone. IANA's data is in the public domain.
*/
package tz

import (
	"archive/zip"
	_ "embed" // the data
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

//go:embed zoneinfo.zip
var zoneinfo string

// builtIn returns the database that is compiled into the binary.
var builtIn = sync.OnceValue(func() *Database {
	files, err := zip.NewReader(strings.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		panic(fmt.Sprintf("zoneinfo.zip, which is compiled in: %v", err))
	}
	d, err := read(files)
	if err != nil {
		panic(fmt.Sprintf("zoneinfo.zip, which is compiled in: %v", err))
	}
	return d
})

// inUse is the database set by [Use], nil for the built-in one.
var inUse atomic.Pointer[Database]

func current() *Database {
	if d := inUse.Load(); d != nil {
		return d
	}
	return builtIn()
}

// Use replaces the database with the database in a zip or a folder, see [Open]. An empty path means the built-in data. The new data must
// contain every zone of the built-in data. After an error, the database is unchanged. Call Use before the first zone is loaded.
func Use(path string) error {
	if path == "" {
		inUse.Store(nil)
		return nil
	}
	d, err := Open(path)
	if err != nil {
		return err
	}
	if err := d.replaces(builtIn()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	inUse.Store(d)
	return nil
}

// Version returns the version of the database, such as 2026f. For data without a version, it returns a digest, such as sha256-0123456789ab.
func Version() string { return current().Version }

// Released returns the day of the release of the database. If only the year is known, it returns the last day of that year. If nothing is
// known, it returns the zero time.
func Released() time.Time { return current().Released }

// Names returns the names of all zones, sorted.
func Names() []string { return current().Names() }

// File returns the compiled file of a zone, nil if there is no such zone.
func File(name string) []byte { return current().File(name) }

// Load returns a zone by its name, which must be exactly one of [Names]. Unlike [time.LoadLocation], it accepts neither "" nor "Local".
// Each zone is parsed once per database.
func Load(name string) (*time.Location, error) { return current().load(name) }
