package access

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzExport: an exported chain in which any line is another text is not whole, unless the
// text says the same: whoever checks a file did not write it.
func FuzzExport(f *testing.F) {
	var lines []string
	for _, l := range chainOf(f, 2) {
		raw, err := json.Marshal(l.View())
		if err != nil {
			f.Fatal(err)
		}
		lines = append(lines, string(raw))
	}
	for n, line := range lines {
		f.Add(n, line)
		f.Add(n, strings.Replace(line, "deposits", "deposit", 1))
		f.Add(n, strings.Replace(line, `"n":`, `"n":1`, 1))
	}
	f.Add(1, `{}`)
	f.Add(0, `{"n":1,"prev":"","record":"{}","hash":""}`)
	f.Add(2, `{"record":"{\"entry\":\"x\",\"at\":\"y\"}","salt":"s"}`)
	f.Fuzz(func(t *testing.T, n int, line string) {
		if n < 0 || n >= len(lines) {
			return
		}
		var c ChainCheck
		for i, text := range lines {
			if i == n {
				text = line
			}
			var v ChainLinkView
			if json.Unmarshal([]byte(text), &v) != nil {
				return
			}
			if l := v.Link(); !c.Add(&l) {
				break
			}
		}
		if !c.Report(nil).Whole {
			return
		}
		var was, is ChainLinkView
		if err := json.Unmarshal([]byte(lines[n]), &was); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(line), &is); err != nil || is.N != was.N || is.Hash != was.Hash || is.Record != was.Record || is.Target != was.Target || is.Before != was.Before || is.After != was.After {
			t.Fatalf("with the line %d as %s the chain is whole", n, line)
		}
	})
}
