package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// file is a file inside of something that is made.
type file struct {
	// name is the place in it, with slashes and without a leading one. A name that
	// ends in a slash is a folder.
	name string
	// from is the file on this machine; empty when body is the content.
	from string
	body []byte
	mode int64
	// owner is the number of user and group; 0 is root.
	owner int
}

// content returns the bytes of the file.
func (f *file) content() ([]byte, error) {
	if f.from == "" {
		return f.body, nil
	}
	return os.ReadFile(f.from)
}

// sorted returns the files in the order of their names: maps and folders give
// them in any order.
func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

// archive packs the files of a system: a zip for Windows, a tarball for others.
func (r *release) archive(t target, files []file) error {
	ending, pack := ".tar.gz", tarball
	if t.os == "windows" {
		ending, pack = ".zip", zipped
	}
	folder := strings.TrimSuffix(r.named(""), "_")
	inside := slices.Clone(files)
	for i := range inside {
		inside[i].name = path.Join(folder, inside[i].name)
	}
	return r.create(t.String()+ending, func(out io.Writer) error { return pack(out, inside, r.at) })
}

// create writes a file of the release.
func (r *release) create(ending string, write func(io.Writer) error) error {
	out, err := os.Create(r.path(r.named(ending)))
	if err != nil {
		return err
	}
	return errors.Join(write(out), out.Close())
}

// tarball writes files as a compressed tar whose bytes depend on nothing but
// them and the time.
func tarball(out io.Writer, files []file, at time.Time) error {
	// The header of gzip has neither a name nor a time.
	packed := gzip.NewWriter(out)
	if err := plainTar(packed, files, at); err != nil {
		return err
	}
	return packed.Close()
}

// plainTar writes files as a tar.
func plainTar(out io.Writer, files []file, at time.Time) error {
	w := tar.NewWriter(out)
	for _, f := range sorted(files) {
		body, err := f.content()
		if err != nil {
			return err
		}
		h := tar.Header{
			Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(body)), Mode: f.mode, ModTime: at,
			Uid: f.owner, Gid: f.owner, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := io.Copy(w, bytes.NewReader(body)); err != nil {
			return err
		}
	}
	return w.Close()
}

// zipped writes files as a zip.
func zipped(out io.Writer, files []file, at time.Time) error {
	w := zip.NewWriter(out)
	for _, f := range sorted(files) {
		body, err := f.content()
		if err != nil {
			return err
		}
		h := zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(f.mode))
		entry, err := w.CreateHeader(&h)
		if err != nil {
			return err
		}
		if _, err := entry.Write(body); err != nil {
			return err
		}
	}
	return w.Close()
}
