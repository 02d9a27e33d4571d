package main

import (
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
