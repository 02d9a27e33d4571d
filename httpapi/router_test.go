package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/live"
	"github.com/dibs-dev/dibs/node"
)

// Every route that answers is documented, and nothing else is.
func TestEveryHandlerIsDocumented(t *testing.T) {
	cfg := Config{Services: ServicesOf(&node.Service{Live: &live.Node{}}), AllowDevTokens: true}.WithDefaults()
	a, err := newAPI(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.tree()
	if err != nil {
		t.Fatal(err)
	}
	raw, _, err := a.served(all)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	documented := []string{"/"} // The route of all unknown addresses.
	for path, item := range doc.Paths {
		for method := range item {
			documented = append(documented, strings.ToUpper(method)+" "+path)
		}
	}
	var served []string
	for _, p := range a.patterns {
		// The files that pages load are no part of the API; the document cannot say that a path ends, or goes on.
		if p != assetPattern {
			p = strings.NewReplacer("{$}", "", "{path...}", "").Replace(p)
			if path := p[strings.Index(p, "/"):]; path != "/" {
				p = strings.TrimSuffix(p, "/")
			}
			served = append(served, p)
		}
	}
	slices.Sort(documented)
	slices.Sort(served)
	// Some addresses are served with a slash at their end, too.
	served = slices.Compact(served)
	if !slices.Equal(documented, served) {
		t.Errorf("documented %q\nserved     %q", documented, served)
	}
}
