package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	testVersion = "v1.2.3-4-gabcdef0"
	testCommit  = "abcdef012345"
)

// here is the system that the tests run on: its binary can be run.
var here = target{"linux", runtime.GOARCH}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newRelease is a release that is made in a folder of its own.
func newRelease(t *testing.T) *release {
	return &release{root: "../..", out: t.TempDir(), version: testVersion, commit: testCommit, at: time.Unix(1796097609, 0).UTC()}
}

// said runs a program that must succeed, and returns what it prints.
func said(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestRelease makes everything for one system, and uses each part as a user
// would.
func TestRelease(t *testing.T) {
	r := newRelease(t)
	// How small the package becomes is not asked here, and takes a third of the time.
	t.Setenv("DPKG_DEB_COMPRESSOR_LEVEL", "0")
	must(t, r.run(t.Context(), here.String()))
	for _, name := range []string{
		"dibs_1.2.3-4-gabcdef0_" + here.String() + ".tar.gz", "dibs_1.2.3-4-gabcdef0_" + here.String() + ".cdx.json",
		"dibs_1.2.3-4-gabcdef0_oci.tar", "dibs_1.2.3+4+gabcdef0_" + here.arch + ".deb", sumsName,
	} {
		if _, err := os.Stat(r.path(name)); err != nil {
			t.Error(err)
		}
	}
	sums := exec.CommandContext(t.Context(), "sha256sum", "--strict", "-c", sumsName)
	sums.Dir = r.out
	if out, err := sums.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 4 {
		t.Errorf("%v: %s", err, out)
	}
	t.Run("archive", func(t *testing.T) { tryArchive(t, r) })
	t.Run("list", func(t *testing.T) { tryList(t, r) })
	t.Run("package", func(t *testing.T) { tryPackage(t, r) })
	t.Run("image", func(t *testing.T) { tryImage(t, r) })
	// Made again into the same folder, nothing of before is left.
	must(t, r.empty())
	if left, err := os.ReadDir(r.out); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

// tryArchive unpacks the archive and runs the program.
func tryArchive(t *testing.T, r *release) {
	dir := t.TempDir()
	said(t, "tar", "-xzf", r.path(r.named(here.String()+".tar.gz")), "-C", dir, "--strip-components=1")
	binary := filepath.Join(dir, "dibs")
	var build struct{ Version, Commit, Arch string }
	must(t, json.Unmarshal([]byte(said(t, binary, "version", "--output", "json")), &build))
	if build.Version != testVersion || build.Commit != testCommit || build.Arch != here.arch {
		t.Errorf("the program is %+v", build)
	}
	program, err := elf.Open(binary)
	must(t, err)
	defer func() { must(t, program.Close()) }()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("the program is not static")
		}
	}
	body, err := os.ReadFile(binary)
	must(t, err)
	root, err := filepath.Abs(r.root)
	must(t, err)
	if bytes.Contains(body, []byte(root+"/")) {
		t.Errorf("the program names %s, where it was built", root)
	}
	said(t, "bash", "-n", filepath.Join(dir, "completions/dibs.bash"))
	for _, page := range []string{"dibs.1", "dibs-serve.1", "dibs-campaign-create.1"} {
		if text, err := os.ReadFile(filepath.Join(dir, "man/man1", page)); err != nil || !bytes.HasPrefix(text, []byte(".nh\n.TH \"DIBS")) {
			t.Errorf("%s: %v: %.80q", page, err, text)
		}
	}
}

// TestSameBytes: what a release is made of depends on the files, the version and
// the time alone: not on the folder, the clock, or the umask.
func TestSameBytes(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(binary, bytes.Repeat([]byte("not a program "), 1000), 0o755))
	made := func(umask int) map[string][]byte {
		t.Setenv("TMPDIR", t.TempDir())
		before := syscall.Umask(umask)
		defer syscall.Umask(before)
		r := newRelease(t)
		for _, to := range targets {
			files, err := r.contents(to, binary)
			must(t, err)
			must(t, r.archive(to, files))
			if to.os == "linux" {
				must(t, r.debian(t.Context(), to.arch, files))
			}
		}
		must(t, r.image([]platform{{"amd64", binary}, {"arm64", binary}}))
		must(t, r.sums())
		all := map[string][]byte{}
		names, err := os.ReadDir(r.out)
		must(t, err)
		for _, e := range names {
			body, err := os.ReadFile(r.path(e.Name()))
			must(t, err)
			all[e.Name()] = body
		}
		return all
	}
	a, b := made(0o022), made(0o077)
	// Six archives, two packages, an image, the sums.
	if len(a) != 10 || len(b) != 10 {
		t.Errorf("%d and %d files were made", len(a), len(b))
	}
	for name := range a {
		if !bytes.Equal(a[name], b[name]) {
			t.Errorf("%s differs", name)
		}
	}
	said := string(a[sumsName])
	for _, name := range []string{"windows_arm64.zip", "darwin_amd64.tar.gz", "_arm64.deb", "oci.tar"} {
		if !strings.Contains(said, name+"\n") {
			t.Errorf("%s has no %s:\n%s", sumsName, name, said)
		}
	}
}

// TestStrangersFolder: a folder with anything else in it is not emptied.
func TestStrangersFolder(t *testing.T) {
	r := newRelease(t)
	must(t, os.WriteFile(r.path("thesis.txt"), nil, 0o600))
	if err := r.run(t.Context(), here.String()); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("err %v", err)
	}
	if _, err := os.Stat(r.path("thesis.txt")); err != nil {
		t.Error(err)
	}
	if err := newRelease(t).run(t.Context(), "plan9_amd64"); err == nil || !strings.Contains(err.Error(), "linux_arm64") {
		t.Errorf("err %v", err)
	}
}
