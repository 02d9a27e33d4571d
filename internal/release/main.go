// Command release makes what users install: for each system a static binary in
// an archive with its list of contents, a Debian package, an image for
// containers, and the checksums of all of them, signed if there is a key.
//
// # Basics
//
// It runs in the repository's root, and writes to a folder that it empties first:
//
//	go run ./internal/release -version v1.2.3 -commit abcdef -time 1796097609
//
// # Caveats
//
// The same commit, Go toolchain and dpkg give the same bytes: every file inside
// has the time of the commit, no owner of this machine, and no path of it.
// Another version of Go or dpkg may give others.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is a system that dibs is made for.
type target struct{ os, arch string }

// targets are all of them, in the order in which they are made.
var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func (t target) String() string { return t.os + "_" + t.arch }

// release is one release while it is made.
type release struct {
	// root is the repository's root, out the folder for what is made.
	root, out string
	// version is as the binary shows it, v1.2.3 say; commit may be empty.
	version, commit string
	// at is the time of every file inside of what is made.
	at time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := release{root: "."}
	flag.StringVar(&r.out, "out", "dist", "the folder for what is made; it is emptied first")
	flag.StringVar(&r.version, "version", "dev", "the version that the binaries show")
	flag.StringVar(&r.commit, "commit", "", "the commit that the binaries show")
	seconds := flag.Int64("time", 0, "the time of every file inside, in seconds since 1970")
	only := flag.String("only", "", "make this system alone: linux_amd64, say")
	key := flag.String("sign", "", "a PEM file with an Ed25519 key, by which the checksums are signed")
	flag.Parse()
	r.at = time.Unix(*seconds, 0).UTC()
	err := r.run(ctx, *only)
	if err == nil && *key != "" {
		err = r.sign(*key)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run makes everything, or all of one system.
func (r *release) run(ctx context.Context, only string) error {
	wanted := slices.Clone(targets)
	if only != "" {
		wanted = slices.DeleteFunc(wanted, func(t target) bool { return t.String() != only })
	}
	if len(wanted) == 0 {
		return fmt.Errorf("there is no system %s; the systems are %v", only, targets)
	}
	if err := r.empty(); err != nil {
		return err
	}
	built, err := os.MkdirTemp("", "dibs-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(built) }()
	var platforms []platform
	for _, t := range wanted {
		binary, err := r.build(ctx, t, built)
		if err == nil {
			err = r.pack(ctx, t, binary)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if t.os == "linux" {
			platforms = append(platforms, platform{arch: t.arch, binary: binary})
		}
	}
	if len(platforms) > 0 {
		if err := r.image(platforms); err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	return r.sums()
}

// pack makes everything that one binary goes into.
func (r *release) pack(ctx context.Context, t target, binary string) error {
	files, err := r.contents(t, binary)
	if err == nil {
		err = r.archive(t, files)
	}
	if err == nil {
		err = r.sbom(t, binary)
	}
	if err == nil && t.os == "linux" {
		err = r.debian(ctx, t.arch, files)
	}
	return err
}

// empty makes the folder for the release, without what an earlier one left. It
// removes files only, and nothing that a release does not make.
func (r *release) empty() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	old, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	for _, e := range old {
		if e.Name() != sumsName && e.Name() != signatureName && !strings.HasPrefix(e.Name(), "dibs_") {
			return fmt.Errorf("%s has %s, which is no part of a release: give an empty folder", r.out, e.Name())
		}
		if err := os.Remove(filepath.Join(r.out, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// path is the place of something that is made.
func (r *release) path(name string) string { return filepath.Join(r.out, name) }

// named is the name of a file of the release: dibs_1.2.3_linux_amd64.tar.gz.
func (r *release) named(ending string) string {
	return "dibs_" + strings.TrimPrefix(r.version, "v") + "_" + ending
}

// sumsName is the name of the file of checksums, which sha256sum -c reads.
const sumsName = "SHA256SUMS"

// sums writes the checksums of all that was made.
func (r *release) sums() error {
	made, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, e := range made {
		body, err := os.ReadFile(r.path(e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(body), e.Name())
	}
	if out.Len() == 0 {
		return errors.New("nothing was made")
	}
	return os.WriteFile(r.path(sumsName), []byte(out.String()), 0o644)
}
