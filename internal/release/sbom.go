package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom lists what is in a binary, as CycloneDX: the modules that the linker put
// there, read from the binary itself, and the Go that compiled it.
func (r *release) sbom(t target, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	return r.create(t.String()+".cdx.json", func(out io.Writer) error {
		encoder := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
		return encoder.EncodeVersion(r.list(t, info), cdx.SpecVersion1_6)
	})
}

// list makes the list. It has no serial number, which would differ each time.
func (r *release) list(t target, info *debug.BuildInfo) *cdx.BOM {
	program := moduleOf(info.Main.Path, r.version)
	program.Type = cdx.ComponentTypeApplication
	program.Name = "dibs"
	program.Properties = &[]cdx.Property{{Name: "dibs:commit", Value: r.commit}, {Name: "dibs:system", Value: t.String()}}
	parts := []cdx.Component{moduleOf("std", info.GoVersion)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, moduleOf(m.Path, m.Version))
	}
	var refs []string
	for _, p := range parts {
		refs = append(refs, p.BOMRef)
	}
	slices.Sort(refs)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.at.Format("2006-01-02T15:04:05Z"), Component: &program,
		Tools: &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: "dibs release", Version: r.version}}},
	}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bom
}

// moduleOf is a Go module as a component. Its package URL is what scanners look
// vulnerabilities up by.
func moduleOf(path, version string) cdx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", path, version)
	return cdx.Component{Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl, BOMRef: purl}
}
