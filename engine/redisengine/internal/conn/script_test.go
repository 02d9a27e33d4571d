package conn

import (
	"slices"
	"strings"
	"testing"
)

// Every file is a script that is loaded, but the part that all shard scripts share;
// and each script whose answer callers rely on is one of them.
func TestEveryScriptIsLoaded(t *testing.T) {
	files, err := luaFiles.ReadDir("lua")
	if err != nil {
		t.Fatal(err)
	}
	loaded := map[string]*Script{}
	for _, s := range scripts {
		if loaded[s.Name] != nil {
			t.Errorf("%s is loaded twice", s.Name)
		}
		loaded[s.Name] = s
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".lua")
		if name != "shard" && loaded[name] == nil {
			t.Errorf("lua/%s is not loaded", f.Name())
		}
	}
	if len(loaded) != len(files)-1 {
		t.Errorf("%d scripts of %d files", len(loaded), len(files))
	}
	for name, s := range loaded {
		if s.waits != slices.Contains(answering, name) {
			t.Errorf("%s waits for replicas: %v", name, s.waits)
		}
	}
	for _, name := range answering {
		if loaded[name] == nil {
			t.Errorf("there is no script %s to rely on", name)
		}
	}
}
