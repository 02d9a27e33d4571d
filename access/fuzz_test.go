package access

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
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

// FuzzChainPoint: what is read as a record that somebody kept is its number and its hash, in their one spelling.
func FuzzChainPoint(f *testing.F) {
	for _, seed := range []string{"", "7:" + ChainOrigin, "7:" + strings.Repeat("AB", 32), "0:" + ChainOrigin, "-1:" + ChainOrigin, "+7:" + ChainOrigin, "7:" + strings.Repeat("x", 64), "9223372036854775808:" + ChainOrigin, ":", "7"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadChainPoint(text)
		if err != nil {
			if !errors.Is(err, &dibs.Error{Reason: dibs.InvalidRequest}) || p != (ChainPoint{}) {
				t.Errorf("%q: %+v, %v", text, p, err)
			}
			return
		}
		n, hash, _ := strings.Cut(strings.TrimLeft(text, "+0"), ":")
		if p.N != 0 && (strconv.FormatInt(p.N, 10) != n || p.Hash != strings.ToLower(hash) || strings.Trim(p.Hash, "0123456789abcdef") != "" || len(p.Hash) != len(ChainOrigin)) {
			t.Errorf("%q is %+v", text, p)
		}
	})
}
