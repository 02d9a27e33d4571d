package main

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestZip: the archive for Windows has the program with its ending, and its
// bytes.
func TestZip(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(binary, []byte("bytes of a program"), 0o600))
	r, windows := newRelease(t), target{"windows", "arm64"}
	files, err := r.contents(windows, binary)
	must(t, err)
	must(t, r.archive(windows, files))
	packed, err := zip.OpenReader(r.path(r.named("windows_arm64.zip")))
	must(t, err)
	defer func() { must(t, packed.Close()) }()
	program, err := packed.Open("dibs_1.2.3-4-gabcdef0/dibs.exe")
	must(t, err)
	if body, err := io.ReadAll(program); err != nil || string(body) != "bytes of a program" {
		t.Errorf("%q, %v", body, err)
	}
	for _, f := range packed.File {
		if !f.Modified.Equal(r.at) {
			t.Errorf("%s is of %s", f.Name, f.Modified)
		}
	}
}
