package tz_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// all returns the zones that are compiled in, without a version.
func all(t *testing.T) fstest.MapFS {
	t.Helper()
	d, err := tz.Open("zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, name := range d.Names() {
		files[name] = &fstest.MapFile{Data: d.File(name)}
	}
	return files
}

// with returns a copy of files in which the file name has the content data.
func with(files fstest.MapFS, name, data string) fstest.MapFS {
	files = maps.Clone(files)
	files[name] = &fstest.MapFile{Data: []byte(data)}
	return files
}

func folder(t *testing.T, files fs.FS) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "zoneinfo")
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

func zipped(t *testing.T, files fs.FS) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zones")
	if err := tztest.Zip(file, files); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFolderAndZipHaveSameVersion(t *testing.T) {
	files := all(t)
	for name, tc := range map[string]struct{ file, text, version, released string }{
		"none":                 {"zone.tab", "#", "sha256-", "0001-01-01"},
		"of macOS":             {"+VERSION", "2026z\n", "2026z", "2026-12-31"},
		"with a day":           {"+VERSION", "2026z\n2026-11-30\n", "2026z", "2026-11-30"},
		"in a file version":    {"version", "2026z", "2026z", "2026-12-31"},
		"of tzdata":            {"tzdata.zi", "# version 2026z\n# redo posix_only\n", "2026z", "2026-12-31"},
		"of a build of tzdata": {"tzdata.zi", "# version 2026z-dirty\n", "2026z-dirty", "2026-12-31"},
		"that is none":         {"version", "1.2.3\n", "sha256-", "0001-01-01"},
		"that is no label":     {"version", "2026z and more\n", "sha256-", "0001-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			files := with(files, tc.file, tc.text)
			fromZip, err := tz.Open(zipped(t, files))
			if err != nil {
				t.Fatal(err)
			}
			fromFolder, err := tz.Open(folder(t, files))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []*tz.Database{fromZip, fromFolder} {
				if !strings.HasPrefix(d.Version, tc.version) || d.Released.Format("2006-01-02") != tc.released {
					t.Errorf("got %s of %s, want %s of %s", d.Version, d.Released, tc.version, tc.released)
				}
			}
			if fromZip.Version != fromFolder.Version {
				t.Errorf("the zip has version %s, the folder %s", fromZip.Version, fromFolder.Version)
			}
		})
	}
}

// TestInvalidZoneFiles uses files as in Debian, in macOS, and in a ConfigMap that is mounted into a Pod.
func TestInvalidZoneFiles(t *testing.T) {
	files := with(with(with(all(t), "posix/UTC", "x"), "right/UTC", "x"), "SECURITY", "x")
	for _, name := range []string{"zone.tab", "leapseconds", "localtime", "posixrules", "tzdata.zi"} {
		files = with(files, name, "x")
	}
	mounted := filepath.Join(t.TempDir(), "mounted")
	if err := errors.Join(os.Symlink(folder(t, files), mounted), os.Symlink("Etc/UTC", filepath.Join(mounted, "Unix"))); err != nil {
		t.Fatal(err)
	}
	d, err := tz.Open(mounted)
	if err != nil {
		t.Fatal(err)
	}
	want := append(tz.Names(), "Unix")
	slices.Sort(want)
	if got := d.Names(); !slices.Equal(got, want) {
		t.Errorf("got the zones %s", got)
	}
	if string(d.File("Unix")) != string(d.File("UTC")) {
		t.Error("a link is not followed")
	}
}

func TestUseReplacesWholeDatabase(t *testing.T) {
	t.Cleanup(func() { _ = tz.Use("") })
	before, _ := tz.Load("Europe/Oslo")
	version := tz.Version()
	files := all(t)
	oslo := string(files["Europe/Oslo"].Data)
	old := strings.Replace(oslo, "TZif2", "TZif\x00", 1)
	missing := maps.Clone(files)
	delete(missing, "US/Pacific")
	noZip := filepath.Join(t.TempDir(), "zoneinfo.zip")
	if err := os.WriteFile(noZip, []byte("no zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file or directory",
		noZip:                              "zoneinfo.zip: must be a zip or a folder with time zones: zip: not a valid zip file",
		t.TempDir():                        "lacks 598 of the 598 time zones in the data that is compiled in (" + version + "), such as Africa/Abidjan",
		zipped(t, missing):                 "lacks 1 of the 598 time zones in the data that is compiled in (" + version + "), such as US/Pacific",
		zipped(t, with(files, "Europe/Oslo", "")):             "zones: Europe/Oslo: is not a compiled time zone",
		zipped(t, with(files, "Europe/Oslo", "TZif")):         "zones: Europe/Oslo: has 32-bit data only",
		zipped(t, with(files, "Europe/Oslo", old)):            "zones: Europe/Oslo: has 32-bit data only",
		zipped(t, with(files, "Europe/Oslo", oslo[:100])):     "zones: Europe/Oslo: is a damaged time zone",
		zipped(t, with(files, "A", strings.Repeat("x", 2e6))): "zones: A: is larger than 1 MiB",
	} {
		if err := tz.Use(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
		if after, _ := tz.Load("Europe/Oslo"); after != before || tz.Version() != version {
			t.Fatalf("after %s, another database is in use: %s", want, tz.Version())
		}
	}
	moved := filepath.Join(t.TempDir(), "moved.zip")
	if err := errors.Join(tztest.Moved(moved), tz.Use(moved)); err != nil {
		t.Fatal(err)
	}
	after, err := tz.Load("Europe/Oslo")
	if err != nil || after == before || tz.Version() != "2099z" || tz.Released().Year() != 2099 {
		t.Errorf("%s of %s, %v", tz.Version(), tz.Released(), err)
	}
	if err := tz.Use(""); err != nil || tz.Version() != version {
		t.Errorf("%s is in use, %v", tz.Version(), err)
	}
}
