package access

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// chainOf is a chain as a ledger has it: a start, and for each of n entries a begin and an end.
func chainOf(t testing.TB, n int) []ChainLink {
	t.Helper()
	var links []ChainLink
	add := func(r ChainRecord, salt string, a *AdminAction) {
		prev := ChainOrigin
		if len(links) > 0 {
			prev = links[len(links)-1].Hash
		}
		l, err := r.Link(salt, int64(len(links)+1), prev)
		if err != nil {
			t.Fatal(err)
		}
		l.Entry = a
		links = append(links, l)
	}
	add(ChainRecord{Kind: ChainStart, Unchained: 2}, "", nil)
	for i := range n {
		at := dibs.Ms(time.UnixMilli(int64(1000 * i)))
		a := &AdminAction{ID: fmt.Sprint("a-", i), At: at, Key: "k", KeyName: "<boss> & co", Role: RoleAdmin, Action: "deposit", Target: "/v1/accounts/42/deposits", Before: []byte(`{"a":"<>&"}`)}
		r, salt := NewChainRecord(ChainBegin, a)
		add(r, salt, a)
		done := *a
		done.Status, done.After = 200, []byte(`{"a":1}`)
		r, salt = NewChainRecord(ChainEnd, &done)
		add(r, salt, &done)
		links[len(links)-2].Entry = &done
		for _, l := range links[len(links)-2:] {
			at := slices.IndexFunc(links, func(o ChainLink) bool { return o.N == l.N })
			links[at].EntryN = int64(len(links))
		}
	}
	return links
}

// judge checks links, and their ends unless those are nil.
func judge(links []ChainLink, known ChainPoint, ends *ChainEnds) ChainReport {
	c := ChainCheck{Known: known}
	for i := range links {
		if !c.Add(&links[i]) {
			break
		}
	}
	return c.Report(ends)
}

// wholeChain is the chain of three entries, and its ends.
func wholeChain(t *testing.T) ([]ChainLink, *ChainEnds) {
	t.Helper()
	links := chainOf(t, 3)
	last := links[len(links)-1]
	return links, &ChainEnds{N: last.N, Hash: last.Hash, Unchained: 2, Erasures: []string{"e0", "e1"}}
}

// TestChain: a whole chain is whole, from the ledger and as an export, and every single change
// of it is found.
func TestChain(t *testing.T) {
	links, ends := wholeChain(t)
	if r := judge(links, ChainPoint{N: 3, Hash: links[2].Hash}, ends); !r.Whole || r.Entries != 3 || r.First != 1 || r.Last != 7 || r.Head != links[6].Hash || r.Unchained != 2 {
		t.Errorf("a whole chain: %+v", r)
	}
	if r := judge(nil, ChainPoint{}, &ChainEnds{Unchained: 9}); !r.Whole {
		t.Errorf("no chain: %+v", r)
	}
	changes := map[string]struct {
		change func(*[]ChainLink, *ChainEnds) (known ChainPoint)
		at     int64
		fault  ChainFault
	}{
		"a record": {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { (*l)[2].Record += " "; return ChainPoint{} }, 3, FaultHash},
		"a record and its hash": {func(l *[]ChainLink, _ *ChainEnds) ChainPoint {
			(*l)[2].Record = (*l)[1].Record
			(*l)[2].Hash = chainHash((*l)[2].Prev, (*l)[2].Record)
			return ChainPoint{}
		}, 3, FaultHash},
		"a missing record": {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { *l = slices.Delete(*l, 2, 3); return ChainPoint{} }, 3, FaultGap},
		"a missing end":    {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { *l = (*l)[:5]; return ChainPoint{} }, 6, FaultGap},
		"a missing begin":  {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { *l = (*l)[2:]; return ChainPoint{} }, 1, FaultGap},
		"an entry's text": {func(l *[]ChainLink, _ *ChainEnds) ChainPoint {
			(*l)[4].Entry.After = []byte(`{"a":2}`)
			return ChainPoint{}
		}, 5, FaultEntry},
		"an entry's key":    {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { (*l)[4].Entry.Key = "other"; return ChainPoint{} }, 5, FaultEntry},
		"an entry's salt":   {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { (*l)[4].Salt = ""; return ChainPoint{} }, 5, FaultEntry},
		"an entry gone":     {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { (*l)[1].Entry = nil; return ChainPoint{} }, 2, FaultMissing},
		"an older entry":    {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { (*l)[4].EntryN = 4; return ChainPoint{} }, 5, FaultEntry},
		"another end":       {func(_ *[]ChainLink, e *ChainEnds) ChainPoint { e.Hash = ChainOrigin; return ChainPoint{} }, 7, FaultHash},
		"an entry more":     {func(_ *[]ChainLink, e *ChainEnds) ChainPoint { e.Strays = []string{"a-x"}; return ChainPoint{} }, 7, FaultStray},
		"an old entry more": {func(_ *[]ChainLink, e *ChainEnds) ChainPoint { e.Unchained = 3; return ChainPoint{} }, 1, FaultStray},
		"not the known one": {func(*[]ChainLink, *ChainEnds) ChainPoint { return ChainPoint{N: 3, Hash: ChainOrigin} }, 3, FaultKnown},
		"before the known":  {func(*[]ChainLink, *ChainEnds) ChainPoint { return ChainPoint{N: 8, Hash: ChainOrigin} }, 8, FaultKnown},
		"written all afresh": {func(l *[]ChainLink, e *ChainEnds) ChainPoint {
			kept := ChainPoint{N: 3, Hash: (*l)[2].Hash}
			*l = chainOf(t, 3)
			e.Hash = (*l)[6].Hash
			return kept
		}, 3, FaultKnown},
	}
	for name, c := range changes {
		links, ends := wholeChain(t)
		known := c.change(&links, ends)
		if r := judge(links, known, ends); r.Whole || r.Fault != c.fault || r.BrokenAt != c.at {
			t.Errorf("%s: %+v, want %s at %d", name, r, c.fault, c.at)
		}
	}
}

// rewritten changes the first entry and adds a record of the kind that fits it, in a chain whose hashes fit: only the
// records before tell.
func rewritten(t *testing.T, kind ChainKind, erasure string, change func(*AdminAction)) ([]ChainLink, *ChainEnds) {
	t.Helper()
	links, ends := wholeChain(t)
	is := *links[2].Entry
	change(&is)
	r, salt := NewChainRecord(kind, &is)
	r.Erasure = erasure
	added, err := r.Link(salt, ends.N+1, ends.Hash)
	if err != nil {
		t.Fatal(err)
	}
	added.Entry, added.EntryN = &is, added.N
	for i := range 2 {
		links[1+i].Entry, links[1+i].EntryN, links[1+i].Salt = &is, added.N, ""
	}
	ends.N, ends.Hash = added.N, added.Hash
	return append(links, added), ends
}

// TestChainRewritten: a later record changes nothing of an entry but its end, once, and what an erasure may change.
func TestChainRewritten(t *testing.T) {
	same := func(*AdminAction) {}
	target := func(a *AdminAction) { a.Target = "/v1/accounts/erased-1/deposits" }
	for name, c := range map[string]struct {
		kind    ChainKind
		erasure string
		change  func(*AdminAction)
	}{
		"a second end":                    {ChainEnd, "", same},
		"a second begin":                  {ChainBegin, "", same},
		"an erasure of none":              {ChainErase, "", target},
		"a made-up erasure":               {ChainErase, "e2", target},
		"an erasure with another key":     {ChainErase, "e1", func(a *AdminAction) { a.Key = "other" }},
		"an erasure with another name":    {ChainErase, "e1", func(a *AdminAction) { a.KeyName = "other" }},
		"an erasure with another role":    {ChainErase, "e1", func(a *AdminAction) { a.Role = RoleViewer }},
		"an erasure with another address": {ChainErase, "e1", func(a *AdminAction) { a.Address = "192.0.2.1" }},
		"an erasure with another request": {ChainErase, "e1", func(a *AdminAction) { a.RequestID = "r" }},
		"an erasure with another act":     {ChainErase, "e1", func(a *AdminAction) { a.Action = "list-claims" }},
		"an erasure with another time":    {ChainErase, "e1", func(a *AdminAction) { a.At = a.At.Add(time.Hour) }},
		"an erasure with another end":     {ChainErase, "e1", func(a *AdminAction) { a.Status, a.Reason = 403, "forbidden" }},
	} {
		links, ends := rewritten(t, c.kind, c.erasure, c.change)
		if r := judge(links, ChainPoint{}, ends); r.Whole || r.Fault != FaultEntry || r.BrokenAt != 8 || r.Entry != "a-0" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	links, ends := rewritten(t, ChainErase, "e1", target)
	if r := judge(links, ChainPoint{}, ends); !r.Whole || r.Erased != 1 || r.Entries != 3 {
		t.Errorf("an erasure: %+v", r)
	}
}

// TestChainExport: an exported line says all that is needed to check it, byte for byte.
func TestChainExport(t *testing.T) {
	export := func() (views []ChainLinkView) {
		links := chainOf(t, 2)
		for i := range links {
			views = append(views, links[i].View())
		}
		return views
	}
	read := func(views []ChainLinkView) (links []ChainLink) {
		for i := range views {
			links = append(links, views[i].Link())
		}
		return links
	}
	if r := judge(read(export()), ChainPoint{}, nil); !r.Whole || r.Entries != 2 {
		t.Errorf("a whole export: %+v", r)
	}
	changed := export()
	changed[4].Target = "/v1/accounts/43/deposits"
	if r := judge(read(changed), ChainPoint{}, nil); r.Fault != FaultEntry || r.BrokenAt != 5 || r.Entry != "a-1" {
		t.Errorf("a changed export: %+v", r)
	}
	if r := judge(read(export()[1:]), ChainPoint{}, nil); r.Fault != FaultGap {
		t.Errorf("an export without its beginning: %+v", r)
	}
}

// TestChainDropped: a chain may begin later when it says so itself, and only there.
func TestChainDropped(t *testing.T) {
	links := chainOf(t, 2)
	last := links[4]
	dropping := func(r ChainRecord) []ChainLink {
		t.Helper()
		l, err := r.Link("", 6, last.Hash)
		if err != nil {
			t.Fatal(err)
		}
		return append(slices.Clone(links), l)
	}
	old := NewDropRecord(time.Now().Add(-actionKeep), 4, links[3].Prev)
	young, none, more := NewDropRecord(time.Now().Add(time.Hour-actionKeep), 4, links[3].Prev), old, old
	none.Cutoff, more.Unchained = "", 3
	for name, c := range map[string]struct {
		links []ChainLink
		fault ChainFault
	}{
		"before their time": {dropping(young)[3:], FaultGap}, "without a time": {dropping(none)[3:], FaultGap}, "with entries more": {dropping(more), FaultStray},
	} {
		if r := judge(c.links, ChainPoint{}, nil); r.Fault != c.fault || r.BrokenAt != 6 {
			t.Errorf("records dropped %s: %+v", name, r)
		}
	}
	links = dropping(old)
	if r := judge(links[3:], ChainPoint{N: 4, Hash: links[3].Hash}, nil); !r.Whole || r.First != 4 {
		t.Errorf("what was dropped: %+v", r)
	}
	if r := judge(links[3:], ChainPoint{N: 2, Hash: links[1].Hash}, nil); r.Fault != FaultKnown || r.BrokenAt != 2 {
		t.Errorf("a known record that is gone: %+v", r)
	}
	if r := judge(links[4:], ChainPoint{}, nil); r.Fault != FaultGap || r.BrokenAt != 4 {
		t.Errorf("more than what was dropped: %+v", r)
	}
}

// TestReadChainPoint reads what the report shows.
func TestReadChainPoint(t *testing.T) {
	if p, err := ReadChainPoint("7:" + ChainOrigin); err != nil || p != (ChainPoint{N: 7, Hash: ChainOrigin}) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ReadChainPoint(""); err != nil || p.N != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"7", "7:", ":" + ChainOrigin, "0:" + ChainOrigin, "x:" + ChainOrigin, "7:ab"} {
		if _, err := ReadChainPoint(text); !errors.Is(err, &dibs.Error{Reason: dibs.InvalidRequest}) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
