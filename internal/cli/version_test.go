package cli

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// TestVersion shows what the linker set, and has a word for what it left out.
func TestVersion(t *testing.T) {
	b := NewBuild("v1.2.3", "abc")
	out, _, code := invoke(t, VersionVerb(b), nil, "version", "--output", "json")
	var shown Build
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown != b || b.Version != "v1.2.3" || b.Commit != "abc" || b.Go != runtime.Version() {
		t.Errorf("%+v, %+v, %v", b, shown, err)
	}
	if out, _, _ = invoke(t, VersionVerb(b), nil, "version"); code != 0 || !strings.Contains(out, "version  v1.2.3\ncommit   abc\n") {
		t.Errorf("%s", out)
	}
	// A test binary has no version of its own.
	if b := NewBuild("", ""); b.Version != "dev" || b.Commit == "" {
		t.Errorf("%+v", b)
	}
}
