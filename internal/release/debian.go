package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// packaging are the files that only the package has: the description, what runs
// at installation and removal, the user, and the settings.
//
//go:embed debian
var packaging embed.FS

// debian makes the Debian package of a processor. dpkg-deb writes it, with the
// release's time and root as the owner of everything.
func (r *release) debian(ctx context.Context, arch string, files []file) error {
	tree, err := os.MkdirTemp("", "dibs-deb-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }()
	inside, err := r.packaged(arch, files)
	if err != nil {
		return err
	}
	for _, f := range inside {
		if err := place(tree, f); err != nil {
			return err
		}
	}
	// dpkg-deb itself only puts back times that are later than the release's.
	err = filepath.WalkDir(tree, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, r.at, r.at))
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("dibs_%s_%s.deb", debianVersion(r.version), arch)
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, r.path(name))
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.at.Unix()))
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("dpkg-deb: %w: %s", err, said)
	}
	return nil
}

// packaged returns the files of the package, with those that describe it.
func (r *release) packaged(arch string, files []file) ([]file, error) {
	unit, err := os.ReadFile(filepath.Join(r.root, "examples/deploy/dibs.service"))
	if err != nil {
		return nil, err
	}
	inside := []file{
		{name: "lib/systemd/system/dibs.service", body: packagedUnit(unit), mode: 0o644},
		{name: "usr/lib/sysusers.d/dibs.conf", mode: 0o644},
		// Secrets go here: nobody but root reads it.
		{name: "etc/dibs/dibs.env", mode: 0o600},
		{name: "DEBIAN/control", mode: 0o644}, {name: "DEBIAN/conffiles", mode: 0o644},
		{name: "DEBIAN/postinst", mode: 0o755}, {name: "DEBIAN/prerm", mode: 0o755}, {name: "DEBIAN/postrm", mode: 0o755},
	}
	for i := range inside {
		if inside[i].body == nil {
			if inside[i].body, err = packaging.ReadFile("debian/" + path.Base(inside[i].name)); err != nil {
				return nil, err
			}
		}
	}
	size := 0
	for _, f := range files {
		f.name = debianPlace(f.name)
		if f.body, err = f.content(); err != nil {
			return nil, err
		}
		f.from = ""
		if strings.Contains(f.name, "/man/") || strings.HasSuffix(f.name, "changelog.gz") {
			if f.body, err = squeezed(f.body); err != nil {
				return nil, err
			}
		}
		size += len(f.body)
		if f.name != "" {
			inside = append(inside, f)
		}
	}
	for i := range inside {
		if inside[i].name == "DEBIAN/control" {
			inside[i].body = r.control(string(inside[i].body), arch, size)
		}
	}
	return inside, nil
}

// control fills in what differs between releases. size is that of the installed
// files in bytes; Debian counts KiB.
func (r *release) control(text, arch string, size int) []byte {
	return []byte(strings.NewReplacer(
		"@VERSION@", debianVersion(r.version), "@ARCH@", arch, "@SIZE@", fmt.Sprint((size+1023)/1024),
	).Replace(text))
}

// debianPlace is where Debian has a file of the archive; empty when it has none.
func debianPlace(name string) string {
	switch {
	case name == "dibs":
		return "usr/bin/dibs"
	case name == "LICENSE":
		return "usr/share/doc/dibs/copyright"
	case name == "CHANGELOG.md":
		return "usr/share/doc/dibs/changelog.gz"
	case name == "completions/dibs.bash":
		return "usr/share/bash-completion/completions/dibs"
	case name == "completions/_dibs":
		return "usr/share/zsh/vendor-completions/_dibs"
	case name == "completions/dibs.fish":
		return "usr/share/fish/vendor_completions.d/dibs.fish"
	case strings.HasPrefix(name, "man/"):
		return "usr/share/" + name + ".gz"
	case strings.HasSuffix(name, ".md"):
		return "usr/share/doc/dibs/" + name
	}
	return ""
}

// packagedUnit is the unit of examples/deploy as the package has it: the program
// is where Debian has programs, and the user is the package's own, so that files
// belong to the same user after the package was removed and installed again.
func packagedUnit(unit []byte) []byte {
	_, body, _ := bytes.Cut(unit, []byte("[Unit]"))
	text := strings.ReplaceAll("[Unit]"+string(body), "/usr/local/bin/dibs", "/usr/bin/dibs")
	return []byte(strings.ReplaceAll(text, "DynamicUser=yes", "User=dibs\nGroup=dibs"))
}

// place writes a file of the package below a folder. Modes are set after the
// writing, since the umask of this process takes bits away.
func place(tree string, f file) error {
	name := filepath.Join(tree, filepath.FromSlash(f.name))
	folder := filepath.Dir(name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for folder != filepath.Dir(tree) {
		if err := os.Chmod(folder, 0o755); err != nil {
			return err
		}
		folder = filepath.Dir(folder)
	}
	return errors.Join(os.WriteFile(name, f.body, 0o600), os.Chmod(name, os.FileMode(f.mode)))
}

// squeezed compresses a text without a name and a time.
func squeezed(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// beforeDigit finds versions that Debian does not take: they begin with a digit.
var beforeDigit = regexp.MustCompile(`^[^0-9]`)

// debianVersion is a version as Debian writes it. A commit after a tag sorts after
// that tag, and one without a tag sorts before all releases.
func debianVersion(version string) string {
	v := strings.TrimPrefix(version, "v")
	if beforeDigit.MatchString(v) || !strings.Contains(v, ".") {
		v = "0~" + v
	}
	// A first part after a hyphen that is no count of commits is a pre-release.
	base, rest, found := strings.Cut(v, "-")
	switch {
	case !found:
	case beforeDigit.MatchString(rest) && rest != "dirty":
		v = base + "~" + rest
	default:
		v = base + "+" + rest
	}
	return strings.ReplaceAll(v, "-", "+")
}
