package main

import (
	"fmt"
	"slices"
	"strings"
)

// layer is a set of packages at one height of the house. A package may import
// the packages of every lower layer.
type layer struct {
	name string
	// packages are folders; "lab/..." stands for lab and all below it. The longest
	// name that fits a package decides. Packages of one entry may import each other.
	packages []string
	// together is set when the packages of the layer may import each other.
	together bool
	// standard is set when the packages may import the standard library only.
	standard bool
	// testsToo is set when tests too may import only what their package may.
	testsToo bool
}

// layers is the house from top to bottom. A package that has no place here is
// reported, and everyone may import it, until it is listed.
//
// The order is that of docs/ARCHITECTURE.md; change both together.
var layers = []layer{
	{name: "commands", together: true, packages: []string{
		"cmd/...", "internal/cli/...", "bench/...", "examples/...", "lab/...", "plan/...",
		"internal/ci/...", "internal/simulation/...", "internal/house/...", "internal/release/...",
	}},
	{name: "doors", packages: []string{"httpapi/...", "gateway/..."}},
	{name: "pages", packages: []string{"web/...", "internal/web/..."}},
	// The tests of the services run on it.
	{name: "rigs", packages: []string{"internal/testnode/..."}},
	{name: "node", packages: []string{"node/..."}},
	// The adapters and the gates fill roles that the services declare.
	{name: "adapters", packages: []string{
		"engine/memengine/...", "engine/redisengine/...", "engine/router/...", "engine/enginetest/...", "ledger/sqlledger/...", "ledger/ledgertest/...",
		"gate/room/...", "gate/ticket/...", "gate/limit/...", "gate/overload/...", "gate/audience/...",
		"events/sinks/...", "client/...", "consumer/...", "idgen/...", "lock/...", "redpacket/...", "tokens/...", "tracing/...",
	}},
	// A database fills it: it has a role for each service.
	{name: "ledger", packages: []string{"ledger"}},
	// The services, each above those that it may import.
	{name: "audit", packages: []string{"audit/...", "livestats/..."}},
	{name: "funds", packages: []string{"funds/..."}},
	{name: "campaigns", packages: []string{"campaigns/..."}},
	{name: "orders", packages: []string{"orders/..."}},
	{name: "announce", packages: []string{"announce/..."}},
	{name: "webhooks", packages: []string{"webhooks/..."}},
	{name: "events", packages: []string{"events/..."}},
	{name: "access", packages: []string{"access/..."}},
	{name: "erasure", packages: []string{"erasure/..."}},
	{name: "claims", packages: []string{"claims/..."}},
	{name: "moving", packages: []string{"moving/..."}},
	{name: "live", packages: []string{"live/..."}},
	{name: "gate", packages: []string{"gate"}},
	{name: "api", packages: []string{"api/..."}},
	{name: "means", packages: []string{"internal/faults/...", "internal/histogram/...", "internal/wait/..."}},
	{name: "domain", standard: true, packages: []string{"."}},
	{name: "leaves", testsToo: true, packages: []string{"internal/..."}},
}

// place is where a package stands: the index of its layer, and the entry that
// names it.
type place struct {
	layer int
	entry string
}

// find returns the place of a package, ok false when it has none.
func find(in []layer, room string) (at place, ok bool) {
	for i, l := range in {
		for _, entry := range l.packages {
			folder, deep := strings.CutSuffix(entry, "/...")
			fits := room == folder || deep && strings.HasPrefix(room, folder+"/")
			// The longest entry wins: "ledger" is another place than
			// "ledger/sqlledger/...".
			if fits && len(entry) > len(at.entry) {
				at, ok = place{i, entry}, true
			}
		}
	}
	return at, ok
}

// unlisted returns the packages that have no place in the layers.
func (h *house) unlisted(in []layer) []string {
	var out []string
	for _, r := range h.packages {
		if _, ok := find(in, r.name); !ok {
			out = append(out, r.name)
		}
	}
	return out
}

// climbs returns the imports that go against the layers.
// Tests are left out in most layers: a test may need a whole node.
func (h *house) climbs(in []layer) []string {
	var out []string
	for _, r := range h.packages {
		at, ok := find(in, r.name)
		imports := r.imports
		if ok && in[at.layer].testsToo {
			imports = slices.Concat(imports, r.testImports)
		}
		for _, path := range imports {
			why := ""
			if path == "C" {
				why = "the binary is static, without cgo"
			} else if ok {
				why = h.against(in, at, path)
			}
			if why != "" {
				out = append(out, fmt.Sprintf("%s imports %s: %s", r.name, h.folder(path), why))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// against returns why a package that stands at a place may not import path, or
// "" when it may.
// An import of a package without a place is allowed here, since unlisted reports that
// package.
func (h *house) against(in []layer, at place, path string) string {
	from := in[at.layer]
	ours := path == h.module || strings.HasPrefix(path, h.module+"/")
	// Only paths of the standard library have no dot in their first element.
	if first, _, _ := strings.Cut(path, "/"); from.standard && (ours || strings.Contains(first, ".")) {
		return from.name + " imports the standard library only"
	}
	to, ok := find(in, h.folder(path))
	switch {
	case !ours || !ok || to.entry == at.entry || to.layer > at.layer:
		return ""
	case to.layer == at.layer && from.together:
		return ""
	case to.layer == at.layer:
		return from.name + " never import each other"
	}
	return fmt.Sprintf("%s stands below %s", from.name, in[to.layer].name)
}

// folder shortens the import path of a package of the house to its folder.
func (h *house) folder(path string) string {
	if path == h.module {
		return "."
	}
	return strings.TrimPrefix(path, h.module+"/")
}
