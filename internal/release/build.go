package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra/doc"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/program"
)

// build makes the static binary of a system in a folder, and returns its path.
// Without version control's stamp and paths of this machine, a clone and an
// unpacked archive of the commit give the same bytes.
func (r *release) build(ctx context.Context, t target, folder string) (string, error) {
	name := filepath.Join(folder, "dibs_"+t.String())
	flags := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s", r.version, r.commit)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", name, "./cmd/dibs")
	cmd.Dir = r.root
	// The environment's own flags could change what is built.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return name, nil
}

// contents are the files that come with a binary, by their place in an archive.
func (r *release) contents(t target, binary string) ([]file, error) {
	program := "dibs"
	if t.os == "windows" {
		program = "dibs.exe"
	}
	files := []file{{name: program, from: binary, mode: 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "README.zh-CN.md", "CHANGELOG.md", "SECURITY.md"} {
		files = append(files, file{name: name, from: filepath.Join(r.root, name), mode: 0o644})
	}
	for _, written := range []func() ([]file, error){r.completions, r.manual} {
		more, err := written()
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// completions are the scripts of the shells.
func (r *release) completions() ([]file, error) {
	var files []file
	for shell, name := range map[string]string{"bash": "dibs.bash", "zsh": "_dibs", "fish": "dibs.fish", "powershell": "dibs.ps1"} {
		root := program.Root(cli.NewBuild(r.version, r.commit))
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{"completion", shell})
		if err := root.Execute(); err != nil {
			return nil, err
		}
		files = append(files, file{name: "completions/" + name, body: out.Bytes(), mode: 0o644})
	}
	return files, nil
}

// manual is a page for section 1 of the manual for each verb: dibs(1),
// dibs-campaign(1), dibs-campaign-create(1).
func (r *release) manual() ([]file, error) {
	folder, err := os.MkdirTemp("", "dibs-man-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	root := program.Root(cli.NewBuild(r.version, r.commit))
	root.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Date: &r.at, Source: "dibs " + r.version, Manual: "dibs"}
	if err := doc.GenManTree(root, &header, folder); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, p := range pages {
		body, err := os.ReadFile(filepath.Join(folder, p.Name()))
		if err != nil {
			return nil, err
		}
		// A default may name a folder of whoever builds.
		if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
			body = bytes.ReplaceAll(body, []byte(home+"/"), []byte("~/"))
		}
		files = append(files, file{name: "man/man1/" + strings.ToLower(p.Name()), body: body, mode: 0o644})
	}
	return files, nil
}
