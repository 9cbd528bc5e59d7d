package tz

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// VersionFile is the name of a file in a zip or a folder. Its first line is the version, and its second line is the day of the release.
// macOS and Java use the same name.
const VersionFile = "+VERSION"

// Database is a set of time zones.
type Database struct {
	Version  string
	Released time.Time
	files    map[string][]byte
	// loaded caches the parsed zones by name.
	loaded sync.Map
}

// Open reads a zip such as Go's lib/time/zoneinfo.zip, or a folder such as /usr/share/zoneinfo, and parses all zones in it.
func Open(path string) (*Database, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readAndParse(path, os.DirFS(path))
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("%s: must be a zip or a folder with time zones: %w", path, err)
	}
	defer func() { _ = z.Close() }() // the file was only read
	return readAndParse(path, z)
}

func readAndParse(path string, files fs.FS) (*Database, error) {
	d, err := read(files)
	if err == nil {
		err = d.parse()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// zoneName matches the names that the CRD of Gates accepts. The only other file of tzdata that matches is SECURITY.
var zoneName = regexp.MustCompile(`^[A-Z][A-Za-z0-9._+/-]{0,63}$`)

// maxFile bounds the size of one file in bytes. The largest zone has 4 KiB, and tzdata.zi has 110 KiB.
const maxFile = 1 << 20

// read reads all zones and the version. It skips the folders posix and right, which duplicate the zones, and the tables of tzdata.
func read(files fs.FS) (*Database, error) {
	d := &Database{files: map[string][]byte{}}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != "." && entry.IsDir() && !zoneName.MatchString(path):
			return fs.SkipDir
		case entry.IsDir() || !zoneName.MatchString(path) || path == "SECURITY":
			return nil
		}
		info, err := fs.Stat(files, path) // follows links
		if err != nil || info.IsDir() {
			return err
		}
		if info.Size() > maxFile {
			return fmt.Errorf("%s: is larger than 1 MiB, which is too much for a time zone", path)
		}
		d.files[path], err = fs.ReadFile(files, path)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.Version, d.Released = version(files)
	d.Version = cmp.Or(d.Version, d.digest())
	return d, nil
}

var versionLine = regexp.MustCompile(`^(?:# version )?((20[0-9]{2})[a-z]{1,2}(?:-[0-9a-z]{1,40})?)$`)

// version returns the version and the day of the release from the first file that contains a version. If the file contains no day, such
// as tzdata.zi, it returns the last day of the year of the version. If no file contains a version, name is empty.
func version(files fs.FS) (name string, released time.Time) {
	for _, file := range []string{VersionFile, "version", "tzdata.zi"} {
		if info, err := fs.Stat(files, file); err != nil || info.Size() > maxFile {
			continue
		}
		text, err := fs.ReadFile(files, file)
		if err != nil {
			continue
		}
		first, rest, _ := strings.Cut(string(text), "\n")
		found := versionLine.FindStringSubmatch(strings.TrimSpace(first))
		if found == nil {
			continue
		}
		second, _, _ := strings.Cut(rest, "\n")
		if released, err = time.Parse(time.DateOnly, strings.TrimSpace(second)); err != nil {
			released, _ = time.Parse(time.DateOnly, found[2]+"-12-31")
		}
		return found[1], released
	}
	return "", time.Time{}
}

// digest returns a substitute for a version. It is the same for a zip and a folder with the same zones, and is a valid label value.
func (d *Database) digest() string {
	sum := sha256.New()
	for _, name := range d.Names() {
		sum.Write(fmt.Appendf(nil, "%s %d\n", name, len(d.files[name])))
		sum.Write(d.files[name])
	}
	return fmt.Sprintf("sha256-%x", sum.Sum(nil)[:6])
}

// parse loads all zones. It returns an error for the first file that is not a valid time zone, or that has only 32-bit data, which ends in
// 2038.
func (d *Database) parse() error {
	for _, name := range d.Names() {
		data := d.files[name]
		switch {
		case !bytes.HasPrefix(data, []byte("TZif")):
			return fmt.Errorf("%s: is not a compiled time zone", name)
		case len(data) < 5 || data[4] < '2':
			return fmt.Errorf("%s: has 32-bit data only, 64-bit data is needed", name)
		}
		if _, err := d.load(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// replaces returns an error if a zone of another database is missing, because Gates may refer to it.
func (d *Database) replaces(other *Database) error {
	var missing []string
	for _, name := range other.Names() {
		if d.files[name] == nil {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("lacks %d of the %d time zones in the data that is compiled in (%s), such as %s; Debian and Ubuntu may have them in the package tzdata-legacy",
		len(missing), len(other.files), other.Version, missing[0])
}

// Names returns the names of all zones, sorted.
func (d *Database) Names() []string { return slices.Sorted(maps.Keys(d.files)) }

// File returns the compiled file of a zone, nil if there is no such zone.
func (d *Database) File(name string) []byte { return d.files[name] }

func (d *Database) load(name string) (*time.Location, error) {
	if known, ok := d.loaded.Load(name); ok {
		return known.(*time.Location), nil
	}
	data := d.files[name]
	if data == nil {
		return nil, fmt.Errorf("unknown time zone %q", name) // not cached, because the number of such names is unbounded
	}
	name = strings.Clone(name)                          // it may be a part of a large text
	loc, err := time.LoadLocationFromTZData(name, data) //nolint:forbidigo // this is where zones come from
	if err != nil {
		return nil, errors.New("is a damaged time zone")
	}
	known, _ := d.loaded.LoadOrStore(name, loc)
	return known.(*time.Location), nil
}
