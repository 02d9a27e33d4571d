package access

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// logOf is a chain as a ledger has it, with what a test adds to it.
type logOf struct {
	t     testing.TB
	links []ChainLink
}

// add adds a record, and says of the entry's earlier links that this one says how it is. a and parts are nil for none.
func (l *logOf) add(r ChainRecord, a *AdminAction, parts *EntryParts) {
	l.t.Helper()
	n, prev := int64(len(l.links)+1), ChainOrigin
	if n > 1 {
		prev = l.links[n-2].Hash
	}
	link, err := r.Link(n, prev)
	if err != nil {
		l.t.Fatal(err)
	}
	l.links = append(l.links, link)
	for i := range l.links {
		if of := &l.links[i]; a != nil && (i == int(n-1) || of.Entry != nil && of.Entry.ID == a.ID) {
			of.Entry, of.EntryN, of.Parts = a, n, parts
			of.Salt = ""
		}
	}
}

// begin and end write an act as the ledger does.
func (l *logOf) begin(a *AdminAction) *EntryParts {
	parts := SealEntry(a)
	l.add(NewChainRecord(ChainBegin, a, &parts), a, &parts)
	return &parts
}

func (l *logOf) end(a *AdminAction, parts *EntryParts, status int, after string) *AdminAction {
	done := *a
	done.Status, done.After = status, []byte(after)
	parts.SealAfter(&done)
	l.add(NewChainRecord(ChainEnd, &done, parts), &done, parts)
	return &done
}

// asks writes an entry that asks for an erasure.
func (l *logOf) asks(erasure, pseudonym string) {
	a := &AdminAction{ID: "a-" + erasure, At: time.UnixMilli(5000), Key: "k", Role: RoleAdmin, Action: EraseAction, Target: "/v1/users/{user}/erasure"}
	parts := l.begin(a)
	l.add(NewAskRecord(a, parts, erasure, pseudonym), a, parts)
	l.end(a, parts, 202, `{"id":"`+erasure+`"}`)
}

// erase has an erasure change the entry of a link, and returns it as it is then.
func (l *logOf) erase(at int, erasure, user, pseudonym string) (*AdminAction, *EntryParts) {
	l.t.Helper()
	a, parts := *l.links[at].Entry, *l.links[at].Parts
	if !a.WithoutUser(&parts, user, pseudonym) {
		l.t.Fatalf("%+v does not name %s", a, user)
	}
	l.add(erased(&a, &parts, erasure), &a, &parts)
	return &a, &parts
}

// erased is the record of an erasure.
func erased(a *AdminAction, parts *EntryParts, erasure string) ChainRecord {
	r := NewChainRecord(ChainErase, a, parts)
	r.Erasure = erasure
	return r
}

// ends says where the chain ends.
func (l *logOf) ends() *ChainEnds {
	last := l.links[len(l.links)-1]
	return &ChainEnds{N: last.N, Hash: last.Hash, Unchained: 2}
}

// deposit is an entry that names the user 42, and bob, with a shipment and codes.
func deposit(n int) *AdminAction {
	return &AdminAction{
		ID: fmt.Sprint("a-", n), At: dibs.Ms(time.UnixMilli(int64(1000 * n))), Key: "k", KeyName: "<boss> & co", Role: RoleAdmin, Action: "deposit",
		Target: "/v1/accounts/42/deposits", Before: []byte(`{"a":"<>&","user_id":"42","sender_id":"bob"}`),
	}
}

// chainOf is a chain: a start, and for each of n entries a begin and an end.
func chainOf(t testing.TB, n int) []ChainLink {
	t.Helper()
	l := &logOf{t: t}
	l.add(ChainRecord{Kind: ChainStart, Unchained: 2}, nil, nil)
	for i := range n {
		a := deposit(i)
		l.end(a, l.begin(a), 200, `{"a":1,"user":"42","carrier":"post","items":["CODE-1"]}`)
	}
	return l.links
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
	return links, &ChainEnds{N: last.N, Hash: last.Hash, Unchained: 2}
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
		"an entry's seals":  {func(l *[]ChainLink, _ *ChainEnds) ChainPoint { (*l)[4].Parts = nil; return ChainPoint{} }, 5, FaultEntry},
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
	changed = export()
	changed[4].Parts, changed[4].Target, changed[4].Before, changed[4].After = nil, "", "", ""
	if r := judge(read(changed), ChainPoint{}, nil); r.Fault != FaultMissing || r.BrokenAt != 5 || r.Entry != "a-1" {
		t.Errorf("an export without the texts of an entry: %+v", r)
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
		l, err := r.Link(6, last.Hash)
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
