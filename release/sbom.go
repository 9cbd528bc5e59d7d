package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bom returns the bill of materials of a Go program in CycloneDX JSON: the program and its modules. cyclonedx-gomod has no option for the
// timestamp, and lists the module in the folder api as ./api@(devel).
func (s source) bom(program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	self := componentOf(cdx.ComponentTypeApplication, info.Path, s.version)
	components := []cdx.Component{componentOf(cdx.ComponentTypeLibrary, "std", info.GoVersion)}
	direct := []string{components[0].BOMRef}
	for _, dep := range info.Deps {
		c := s.ofModule(dep)
		components = append(components, c)
		direct = append(direct, c.BOMRef)
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Timestamp: s.at.Format(time.RFC3339), Component: &self}
	b.Components = &components
	b.Dependencies = &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &direct}}
	var raw bytes.Buffer
	if err := cdx.NewBOMEncoder(&raw, cdx.BOMFileFormatJSON).SetPretty(true).Encode(b); err != nil {
		return nil, err
	}
	return raw.Bytes(), nil
}

// ofModule returns the component of a module, or of its replacement. A module in a folder of the repository has the version of the
// release.
func (s source) ofModule(m *debug.Module) cdx.Component {
	switch {
	case m.Replace != nil && strings.HasPrefix(m.Replace.Path, "."):
		return componentOf(cdx.ComponentTypeLibrary, m.Path, s.version)
	case m.Replace != nil:
		m = m.Replace
	}
	return componentOf(cdx.ComponentTypeLibrary, m.Path, m.Version)
}

func componentOf(kind cdx.ComponentType, path, version string) cdx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", path, url.PathEscape(version))
	return cdx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}
