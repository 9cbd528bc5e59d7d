// prose checks the English of docs, messages, descriptions and comments, and says where it is hard to read.
//
//	go run ./tests/prose                 all of the repository
//	go run ./tests/prose docs/start      some files or folders
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	paths := os.Args[1:]
	if len(paths) == 0 {
		paths = []string{"."}
	}
	files, findings, err := check(paths)
	for _, finding := range findings {
		fmt.Println(finding)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case len(findings) > 0:
		fmt.Printf("prose: %d findings in %d files, see tests/prose/rules.go\n", len(findings), files)
		os.Exit(1)
	}
}

// skipped are folders of which nothing is ours, or nothing is written by hand. A word in tests/tools builds the control plane once more.
var skipped = []string{".git", ".cache", "bin", "dist", "node_modules", "testdata", "tools", "zoneinfo"}

// check returns how many files have been read below some paths, and what is hard to read in them.
func check(paths []string) (files int, findings []string, err error) {
	for _, path := range paths {
		err = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error { //nolint:gosec // a file of the repository
			switch {
			case err != nil:
				return err
			case entry.IsDir() && slices.Contains(skipped, entry.Name()):
				return filepath.SkipDir
			case entry.IsDir():
				return nil
			}
			passages, err := read(path)
			if len(passages) > 0 {
				files++
				findings = append(findings, judge(path, passages)...)
			}
			return err
		})
		if err != nil {
			return files, findings, err
		}
	}
	return files, findings, nil
}

// read returns what people read of a file.
func read(path string) ([]passage, error) {
	readers := map[string]func(string, []byte) ([]passage, error){".md": markdown, ".go": golang, ".yaml": hashes, ".sh": hashes, "Makefile": hashes}
	reader := readers[filepath.Ext(path)]
	if reader == nil {
		reader = readers[filepath.Base(path)]
	}
	if reader == nil {
		return nil, nil
	}
	content, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil || bytes.Contains(content, []byte("controller-gen.kubebuilder.io/version")) {
		return nil, err // generated of the comments in api/v1alpha1, which are read there
	}
	return reader(path, content)
}
