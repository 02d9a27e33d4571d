package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// tryList compares the list with what the go command wrote into the binary.
func tryList(t *testing.T, r *release) {
	list, err := os.Open(r.path(r.named(here.String() + ".cdx.json")))
	must(t, err)
	defer func() { must(t, list.Close()) }()
	var bom cdx.BOM
	must(t, cdx.NewBOMDecoder(list, cdx.BOMFileFormatJSON).Decode(&bom))
	if bom.SpecVersion != cdx.SpecVersion1_6 || bom.Metadata.Component.Version != testVersion {
		t.Errorf("%s of %+v", bom.SpecVersion, bom.Metadata.Component)
	}
	listed := map[string]bool{}
	for _, c := range *bom.Components {
		listed[c.PackageURL] = true
	}
	dir := t.TempDir()
	said(t, "tar", "-xzf", r.path(r.named(here.String()+".tar.gz")), "-C", dir, "--strip-components=1")
	info, err := buildinfo.ReadFile(filepath.Join(dir, "dibs"))
	must(t, err)
	for _, m := range info.Deps {
		if !listed["pkg:golang/"+m.Path+"@"+m.Version] {
			t.Errorf("the list lacks %s %s", m.Path, m.Version)
		}
	}
	if len(info.Deps) < 20 || len(listed) != len(info.Deps)+1 {
		t.Errorf("%d modules are in the binary, and %d parts in the list", len(info.Deps), len(listed))
	}
	if !listed["pkg:golang/std@"+info.GoVersion] {
		t.Error("the list lacks Go itself")
	}
	if on := (*bom.Dependencies)[0]; len(*on.Dependencies) != len(listed) {
		t.Errorf("%s depends on %d", on.Ref, len(*on.Dependencies))
	}
}
