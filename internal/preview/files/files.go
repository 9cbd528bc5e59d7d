// Package files reads manifests from files, folders and kustomize folders. It never accesses the network, and runs no plugins.
package files

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// Read reads manifests into a set, from a file, from in if the path is -, or from a folder. A folder with a kustomization is built with
// kustomize. Any other folder is read recursively, as Flux does. Read returns an error if anything cannot be read or built.
func Read(set *preview.Set, path string, in io.Reader) error {
	if path == "-" {
		return set.Read(path, in)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return readFolder(set, path)
	}
	return readFile(set, path)
}

func readFile(set *preview.Set, path string) error {
	f, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it is only read
	return set.Read(path, f)
}

// readFolder reads a folder. It ignores hidden files and folders, such as .git.
func readFolder(set *preview.Set, root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != root && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir() && isKustomize(path):
			if err := build(set, path); err != nil {
				return err
			}
			return filepath.SkipDir
		case entry.IsDir() || !isManifest(path):
			return nil
		}
		return readFile(set, path)
	})
}

// isManifest returns whether a path is a file with manifests. A link to a folder is not one.
func isManifest(path string) bool {
	info, err := os.Stat(path)
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) && (err != nil || info.Mode().IsRegular())
}
