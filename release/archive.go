package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
)

// file is a file in an archive or an image.
type file struct {
	mode    int64
	content []byte
}

// add writes a file to a tar. The file belongs to root and has the time of the commit.
func (s source) add(w *tar.Writer, path string, f file) error {
	header := tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: f.mode, Size: int64(len(f.content)), ModTime: s.at, Format: tar.FormatPAX}
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	_, err := w.Write(f.content)
	return err
}

// tarOf returns files as a tar.gz.
func (s source) tarOf(names []string, files map[string]file) ([]byte, error) {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	if err := s.writeTar(compressed, names, files); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return packed.Bytes(), err
}

// writeTar writes files as a tar.
func (s source) writeTar(to io.Writer, names []string, files map[string]file) error {
	w := tar.NewWriter(to)
	for _, name := range names {
		if err := s.add(w, name, files[name]); err != nil {
			return err
		}
	}
	return w.Close()
}

// zipOf returns files as a zip.
func (s source) zipOf(names []string, files map[string]file) ([]byte, error) {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, name := range names {
		in, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: s.at})
		if err != nil {
			return nil, err
		}
		if _, err := in.Write(files[name].content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return packed.Bytes(), err
}
