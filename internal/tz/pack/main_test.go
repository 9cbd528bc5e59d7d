package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/tz"
)

func TestPackIsReproducible(t *testing.T) {
	d, err := tz.Open("../zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := archive(d, d.Released.Format("2006-01-02"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../zoneinfo.zip")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(packed, want) {
		t.Errorf("zoneinfo.zip has %d bytes, and packed again it has %d bytes", len(want), len(packed))
	}
}

func TestPackKeepsAllNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "zoneinfo.zip")
	if err := pack(t.TempDir(), "2099-01-02", file); err == nil || !strings.Contains(err.Error(), "lacks 598 of the 598 time zones") {
		t.Errorf("got %v", err)
	}
	if err := pack(t.TempDir(), "soon", file); err == nil || !strings.Contains(err.Error(), `"soon" must be a day`) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a zip was written")
	}
}

// update runs update.sh with replacements for the commands of Debian, and returns its output.
func update(t *testing.T, commands map[string]string, env string, args ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	for name, script := range commands {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "../update.sh", args...)
	c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), env)
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestOnlyUpdateNeedsNetwork(t *testing.T) {
	apt := map[string]string{"apt-get": "echo 'E: Could not connect' >&2; exit 100"}
	const want = "time zone data: not checked: no network: E: Could not connect\n"
	if got, err := update(t, apt, "DEB=", "outdated"); err != nil || got != want {
		t.Errorf("outdated: %v: %s", err, got)
	}
	if got, err := update(t, apt, "DEB="); err == nil || got != want {
		t.Errorf("update: %v: %s", err, got)
	}
}

// debian returns the path of a tar that replaces Debian's package, and a replacement for dpkg-deb that unpacks it.
func debian(t *testing.T, version, news string) (path string, dpkg map[string]string) {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(news))
	_ = z.Close()
	path = filepath.Join(t.TempDir(), "tzdata.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	for name, data := range map[string]string{"zoneinfo/tzdata.zi": "# version " + version + "\n", "doc/tzdata/changelog.gz": packed.String()} {
		_ = w.WriteHeader(&tar.Header{Name: "usr/share/" + name, Mode: 0o644, Size: int64(len(data))})
		_, _ = w.Write([]byte(data))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path, map[string]string{"dpkg-deb": `exec tar -xf "$2" -C "$3"`}
}

func TestOutdatedComparesVersions(t *testing.T) {
	const news = "Release 2099a - 2099-01-02 03:04:05 -0700\n\n  Briefly:\n\nRelease 2000a - 2000-01-02 03:04:05 -0700\n"
	for version, want := range map[string]string{
		"2099a": "2099a of 2099-01-02 is newer than " + tz.Version() + ", take it with: make zones\n",
		"2000a": tz.Version() + " is built in, the package has nothing newer\n",
		"2098z": "not checked: the package has no version or no day of its release\n",
	} {
		path, dpkg := debian(t, version, news)
		if got, err := update(t, dpkg, "DEB="+path, "outdated"); err != nil || got != "time zone data: "+want {
			t.Errorf("%s: %v: %s", version, err, got)
		}
	}
}
