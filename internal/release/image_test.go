package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// tryImage lets skopeo, which knows nothing of how the image was made, read all
// of it, and runs a server in what the image has and nothing else.
func tryImage(t *testing.T, r *release) {
	from := "oci-archive:" + r.path(r.named("oci.tar")) + ":" + r.version
	dir := t.TempDir()
	// The copy checks every checksum and size on its way.
	said(t, "skopeo", "copy", "--quiet", "--insecure-policy", from, "dir:"+dir)
	var image ocispec.Image
	must(t, json.Unmarshal([]byte(said(t, "skopeo", "inspect", "--config", from)), &image))
	if c := image.Config; image.Architecture != here.arch || c.User != "65532:65532" || c.Labels[ocispec.AnnotationVersion] != r.version {
		t.Errorf("the image is %+v", image)
	}
	var manifest ocispec.Manifest
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &manifest))
	root := t.TempDir()
	must(t, os.Chmod(root, 0o755))
	for _, layer := range manifest.Layers {
		said(t, "tar", "-xzpf", filepath.Join(dir, layer.Digest.Encoded()), "-C", root, "--numeric-owner")
	}
	certificates, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	must(t, err)
	if n := strings.Count(string(certificates), "BEGIN CERTIFICATE"); n < 50 {
		t.Errorf("the image trusts %d authorities", n)
	}
	serveIn(t, root, &image.Config)
}

// serveIn runs a container's command with a folder as its root, as the image's
// user, until it serves; then it stops the server.
func serveIn(t *testing.T, root string, config *ocispec.ImageConfig) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	serve := exec.CommandContext(ctx, config.Entrypoint[0], config.Cmd...)
	serve.Dir = config.WorkingDir
	serve.Env = append(config.Env, "DIBS_LISTEN=127.0.0.1:0", "DIBS_ADMIN_KEY=test-admin-key-0123456789", "DIBS_JWT_SECRET=0123456789abcdef0123456789abcdef")
	serve.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	logs, err := serve.StderrPipe()
	must(t, err)
	must(t, serve.Start())
	var said strings.Builder
	serves := false
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "msg=serving") {
			serves = true
			must(t, serve.Process.Signal(syscall.SIGTERM))
		}
	}
	if err := serve.Wait(); err != nil || !serves {
		t.Errorf("%v:\n%s", err, &said)
	}
}
