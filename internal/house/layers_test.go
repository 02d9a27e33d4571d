package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestImportsFollowTheLayers(t *testing.T) {
	for _, i := range imports {
		t.Run(i.file+" "+i.path, func(t *testing.T) {
			t.Parallel()
			b := built{}
			b.file(filepath.Dir(i.file)+"/own.go", "").file(i.file, "import _ \""+i.path+"\"\n")
			if strings.HasSuffix(i.file, "_test.go") {
				b[filepath.Dir(i.file)+"/b_test.go"] = b[i.file]
				delete(b, i.file)
			}
			got := b.house(t).checkImports(nil)
			if i.want == "" {
				expect(t, got)
			} else {
				expect(t, got, i.want)
			}
		})
	}
}

// TestUnlistedPackagesAreReported has a package without a place named.
func TestUnlistedPackagesAreReported(t *testing.T) {
	h := built{}.file("unknown/a.go", "").house(t)
	if got := h.unlisted(layers); !slices.Equal(got, []string{"unknown"}) {
		t.Errorf("got %q, want the package unknown", got)
	}
}

// TestProgramHasNoToolsOfTests looks for what only tests need in the program that users
// get: internal/servers is in it, since dibs lab starts servers.
func TestProgramHasNoToolsOfTests(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/dibs-dev/dibs/cmd/dibs").Output()
	if err != nil || !strings.Contains(string(out), "dibs/internal/servers\n") {
		t.Fatalf("the program's packages are not known: %v", err)
	}
	for _, tool := range []string{"Shopify/toxiproxy", "rs/zerolog", "uber.org/goleak", "anishathalye/porcupine", "pgregory.net/rapid", "chromedp/", "kfake", "zitadel/oidc"} {
		if strings.Contains(string(out), tool) {
			t.Errorf("the program contains %q, which is for tests", tool)
		}
	}
}
