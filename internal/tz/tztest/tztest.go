// Package tztest provides time zone data for tests, and machines with wrong zone files.
package tztest

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/gating-controller/internal/tz"
)

// Offset is the UTC offset in seconds of every zone on a machine with wrong zones. No zone of the database has this offset.
const Offset = 11*60*60 + 11*60

// wrong returns the file of a zone that has always had Offset, see RFC 9636.
func wrong() []byte {
	file := append([]byte("TZif"), make([]byte, 28)...)
	file = binary.BigEndian.AppendUint32(file, 0) // transitions
	file = binary.BigEndian.AppendUint32(file, 1) // types
	file = binary.BigEndian.AppendUint32(file, 4) // characters
	file = binary.BigEndian.AppendUint32(file, Offset)
	return append(file, 0, 0, 'B', 'A', 'D', 0)
}

// Folder creates a folder with wrong zones, for the variable ZONEINFO.
func Folder(dir string) error {
	for _, name := range tz.Names() {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // others read zones, too
			return err
		}
		if err := os.WriteFile(file, wrong(), 0o644); err != nil { //nolint:gosec // others read zones, too
			return err
		}
	}
	return nil
}

// Run runs the tests of a package (a testing.M), and all processes that they start, on a machine with wrong zones. It returns the exit
// code of the tests.
func Run(m interface{ Run() int }) int {
	dir, err := os.MkdirTemp("", "zoneinfo-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system cleans up as well
	if err := errors.Join(Folder(dir), os.Setenv("ZONEINFO", dir)); err != nil {
		panic(err)
	}
	return m.Run()
}

// Zip writes files into a zip without compression, because Go cannot read compressed files from a zip in the variable ZONEINFO.
func Zip(name string, files fs.FS) (err error) {
	file, err := os.Create(name) //nolint:gosec // a test names it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	z := zip.NewWriter(file)
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: path, Method: zip.Store})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	return errors.Join(err, z.Close())
}

// Fresh writes a zip with the built-in data, as if it had been released on a day, so that kubectl gate check does not warn about its age.
func Fresh(name string, day time.Time) error {
	return Zip(name, builtIn(tz.Version()+"\n"+day.Format(time.DateOnly)+"\n"))
}

// Unpack writes the built-in data into a folder.
func Unpack(dir string) error { return os.CopyFS(dir, builtIn(tz.Version()+"\n")) }

// Moved writes a zip with data of version 2099z in which Oslo has the time of Tokyo.
func Moved(name string) error {
	files := builtIn("2099z\n2099-12-01\n")
	files["Europe/Oslo"] = files["Asia/Tokyo"]
	return Zip(name, files)
}

// builtIn returns the built-in zones.
func builtIn(version string) fstest.MapFS {
	files := fstest.MapFS{tz.VersionFile: {Data: []byte(version)}}
	for _, zone := range tz.Names() {
		files[zone] = &fstest.MapFile{Data: tz.File(zone)}
	}
	return files
}

// archive creates a zip with wrong zones.
func archive(name string) error {
	files := fstest.MapFS{}
	for _, zone := range tz.Names() {
		files[zone] = &fstest.MapFile{Data: wrong()}
	}
	return Zip(name, files)
}

// Machines returns functions that make a command run as if on a machine with wrong zones, by name.
func Machines(t *testing.T) map[string]func(*exec.Cmd) {
	t.Helper()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "zoneinfo.zip")
	if err := errors.Join(Folder(dir), archive(file)); err != nil {
		t.Fatal(err)
	}
	machines := map[string]func(*exec.Cmd){
		"a folder in ZONEINFO":     func(c *exec.Cmd) { c.Env = append(c.Environ(), "ZONEINFO="+dir) },
		"a zip in ZONEINFO":        func(c *exec.Cmd) { c.Env = append(c.Environ(), "ZONEINFO="+file) },
		"the folder of the system": func(c *exec.Cmd) { mounted(c, dir) },
	}
	probe := exec.CommandContext(t.Context(), "true")
	mounted(probe, dir)
	if out, err := probe.CombinedOutput(); err != nil {
		t.Logf("mounting is not permitted, or there is no folder: %v %s", err, out)
		delete(machines, "the folder of the system")
	}
	return machines
}

// mounted makes a command run in its own mount namespace, with a folder mounted over the zones of the system.
func mounted(c *exec.Cmd, dir string) {
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	c.Args = append([]string{"sh", "-c", `mount --bind "$0" /usr/share/zoneinfo && exec "$@"`, dir, c.Path}, c.Args[1:]...)
	c.Path = "/bin/sh"
}
