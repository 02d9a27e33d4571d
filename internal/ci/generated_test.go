package ci_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// served returns the OpenAPI document of a server.
func served(t *testing.T, address string) []byte {
	t.Helper()
	answer, err := http.Get(address + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	document, err := io.ReadAll(answer.Body)
	if closeErr := answer.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v", answer.StatusCode, err)
	}
	return document
}

// TestGeneratedClient has oapi-codegen make a Go client of what the server describes, and
// the compiler takes it. The generator and the library that its code needs are pinned in
// tools.mod, so that no dependency of the module comes from it.
func TestGeneratedClient(t *testing.T) {
	dir := t.TempDir()
	document := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(document, served(t, startDev(t, compiled(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = root
		// As a release is built: its packages are compiled already.
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, said)
		}
	}
	client := filepath.Join(dir, "client.go")
	run("go", "tool", "-modfile=tools.mod", "oapi-codegen", "-generate", "types,client", "-package", "generated", "-o", client, document)
	// The file stands in a folder of the module that is not there: its imports are those
	// of tools.mod, and nothing is written beside the sources.
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "internal/ci/generated/client.go"): client}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	run("go", "build", "-modfile=tools.mod", "-overlay="+filepath.Join(dir, "overlay.json"), "./internal/ci/generated")
}
