// Pack writes a zip of time zones for internal/tz, see update.sh.
//
//	pack                         prints the version that is compiled in
//	pack FOLDER DAY FILE         writes the zones of a folder, which were released on a day
package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/gating-controller/internal/tz"
)

func main() {
	var err error
	switch len(os.Args) {
	case 1:
		fmt.Println(tz.Version())
	case 4:
		err = pack(os.Args[1], os.Args[2], os.Args[3])
	default:
		err = errors.New("usage: pack [FOLDER DAY FILE]")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(folder, day, file string) error {
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return fmt.Errorf("%q must be a day such as 2026-10-27", day)
	}
	if err := tz.Use(folder); err != nil { // the new data must have all zones
		return err
	}
	d, err := tz.Open(folder)
	if err != nil {
		return err
	}
	packed, err := archive(d, day)
	if err != nil {
		return err
	}
	return os.WriteFile(file, packed, 0o644) //nolint:gosec // for all to read
}

// archive returns a zip with the version, the day of the release and all zones. The same zones give the same bytes. Files are not
// compressed, because Go reads no compressed files from a zip in the variable ZONEINFO.
func archive(d *tz.Database, day string) ([]byte, error) {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	add := func(name string, data []byte) error {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	err := add(tz.VersionFile, []byte(d.Version+"\n"+day+"\n"))
	for _, name := range d.Names() {
		err = errors.Join(err, add(name, d.File(name)))
	}
	err = errors.Join(err, z.Close())
	return packed.Bytes(), err
}
