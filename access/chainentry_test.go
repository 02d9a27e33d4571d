package access

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// erasedLog is a chain of three entries, with two erasures that were asked for: e1 of the user 42, and e2 of bob. Both
// have changed the first entry, and e1 the second.
func erasedLog(t *testing.T) *logOf {
	t.Helper()
	l := &logOf{t: t, links: chainOf(t, 3)}
	l.asks("e1", "erased-42")
	l.erase(1, "e1", "42", "erased-42")
	l.erase(3, "e1", "42", "erased-42")
	l.asks("e2", "erased-b")
	l.erase(1, "e2", "bob", "erased-b")
	return l
}

// TestChainErased: an erasure changes what names the user, and the chain stays whole, in the ledger and as an export. What
// was said of others stays checkable, and the salts of what it changed are gone.
func TestChainErased(t *testing.T) {
	l := erasedLog(t)
	if r := judge(l.links, ChainPoint{}, l.ends()); !r.Whole || r.Erased != 3 || r.Entries != 5 || r.Older != 0 {
		t.Fatalf("a log after erasures: %+v", r)
	}
	first, second := l.links[1], l.links[3]
	if a := first.Entry; a.Target != "/v1/accounts/erased-42/deposits" || string(a.Before) != `{"a":"<>&","user_id":"erased-42","sender_id":"erased-b"}` ||
		string(a.After) != `{"a":1,"user":"erased-42","carrier":"","items":[]}` {
		t.Errorf("the entry after the erasures: %+v", a)
	}
	broken := func(seals []Seal) (which []bool) {
		for _, s := range seals {
			which = append(which, s.broken())
		}
		return which
	}
	if !slices.Equal(broken(first.Parts.Before), []bool{true, true}) || !slices.Equal(broken(second.Parts.Before), []bool{true, false}) {
		t.Errorf("the seals: %v and %v", first.Parts.Before, second.Parts.Before)
	}
	var links []ChainLink
	for i := range l.links {
		v := l.links[i].View()
		raw, err := json.Marshal(&v)
		if err != nil {
			t.Fatal(err)
		}
		var read ChainLinkView
		if err := json.Unmarshal(raw, &read); err != nil {
			t.Fatal(err)
		}
		links = append(links, read.Link())
	}
	if r := judge(links, ChainPoint{}, nil); !r.Whole || r.Entries != 5 {
		t.Errorf("the export of a log after erasures: %+v", r)
	}
}

// TestChainRewritten: a person who may write to the database adds a record to the end of the chain, with an entry, seals,
// erasures and hashes that fit. An entry says what it said all the same, but for its end, once, and what an erasure
// leaves that an entry before has asked for.
func TestChainRewritten(t *testing.T) {
	body := func(old, new string) func(*AdminAction) {
		return func(a *AdminAction) { a.Before = []byte(strings.Replace(string(a.Before), old, new, 1)) }
	}
	none := func(*AdminAction) {}
	for name, c := range map[string]struct {
		kind    ChainKind
		erasure string
		change  func(*AdminAction)
	}{
		"a second end":                      {ChainEnd, "", none},
		"a second begin":                    {ChainBegin, "", none},
		"an erasure of none":                {ChainErase, "", none},
		"an erasure that nobody asked for":  {ChainErase, "e3", none},
		"an erasure with another key":       {ChainErase, "e2", func(a *AdminAction) { a.Key = "other" }},
		"an erasure with another name":      {ChainErase, "e2", func(a *AdminAction) { a.KeyName = "other" }},
		"an erasure with another role":      {ChainErase, "e2", func(a *AdminAction) { a.Role = RoleViewer }},
		"an erasure with another address":   {ChainErase, "e2", func(a *AdminAction) { a.Address = "192.0.2.1" }},
		"an erasure with another request":   {ChainErase, "e2", func(a *AdminAction) { a.RequestID = "r" }},
		"an erasure with another act":       {ChainErase, "e2", func(a *AdminAction) { a.Action = "list-claims" }},
		"an erasure with another time":      {ChainErase, "e2", func(a *AdminAction) { a.At = a.At.Add(time.Hour) }},
		"an erasure with another end":       {ChainErase, "e2", func(a *AdminAction) { a.Status, a.Reason = 403, "forbidden" }},
		"an erasure with another object":    {ChainErase, "e2", func(a *AdminAction) { a.Target = "/v1/accounts/42/refunds" }},
		"an erasure with another detail":    {ChainErase, "e2", body("<>&", "<>")},
		"an erasure with another result":    {ChainErase, "e2", func(a *AdminAction) { a.After = []byte(`{"a":2,"user":"42","carrier":"post","items":["CODE-1"]}`) }},
		"an erasure with another user":      {ChainErase, "e2", body(`"bob"`, `"eve"`)},
		"an erasure with a text taken away": {ChainErase, "e2", func(a *AdminAction) { a.Before = nil }},
	} {
		l := erasedLog(t)
		// The third entry, which no erasure has changed. Its seals stay, unless there are too many or too few then.
		a, parts := *l.links[5].Entry, *l.links[5].Parts
		c.change(&a)
		if c.erasure == "e2" {
			a.WithoutUser(&parts, "42", "erased-b")
		}
		if r := NewChainRecord(c.kind, &a, &parts); r.Target == "" || r.Before == "" || r.After == "" {
			parts = SealEntry(&a)
		}
		r := NewChainRecord(c.kind, &a, &parts)
		r.Erasure = c.erasure
		l.add(r, &a, &parts)
		at := l.links[len(l.links)-1].N
		ends := l.ends()
		ends.Erasures = []string{"e1", "e2", "e3"}
		if r := judge(l.links, ChainPoint{}, ends); r.Whole || r.Fault != FaultEntry || r.BrokenAt != at || r.Entry != "a-2" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestChainSeals: a slot of which an erasure is said to have deleted the salt has what an erasure leaves, of those that
// changed the entry.
func TestChainSeals(t *testing.T) {
	broken := func(seals []Seal, i int) {
		_, digest := seals[i].parts()
		seals[i] = Seal("." + digest)
	}
	for name, change := range map[string]func(*AdminAction, *EntryParts){
		"another user": func(a *AdminAction, p *EntryParts) {
			broken(p.Before, 1)
			a.Before = []byte(`{"a":"<>&","user_id":"erased-42","sender_id":"eve"}`)
		},
		"a made-up pseudonym": func(a *AdminAction, p *EntryParts) {
			broken(p.Before, 1)
			a.Before = []byte(`{"a":"<>&","user_id":"erased-42","sender_id":"erased-x"}`)
		},
		"the pseudonym of an erasure of other entries": func(a *AdminAction, p *EntryParts) {
			broken(p.Before, 1)
			a.Before = []byte(`{"a":"<>&","user_id":"erased-42","sender_id":"erased-b"}`)
		},
		"a user under a seal that stands": func(a *AdminAction, _ *EntryParts) {
			a.Before = []byte(`{"a":"<>&","user_id":"erased-42","sender_id":"eve"}`)
		},
		"a user after the erasure": func(a *AdminAction, _ *EntryParts) { a.Target = "/v1/accounts/eve/deposits" },
		"a shipment after the erasure": func(a *AdminAction, _ *EntryParts) {
			a.After = []byte(`{"a":1,"user":"erased-42","carrier":"dhl","items":[]}`)
		},
		"a commitment":                         func(_ *AdminAction, p *EntryParts) { p.Before[0] = "." + newSeal("x")[1:] },
		"a seal less":                          func(_ *AdminAction, p *EntryParts) { p.Before = p.Before[:1] },
		"another salt with another commitment": func(a *AdminAction, p *EntryParts) { *p = SealEntry(a) },
	} {
		l := erasedLog(t)
		a, parts := *l.links[3].Entry, *l.links[3].Parts
		parts.Before = slices.Clone(parts.Before)
		change(&a, &parts)
		for i := range l.links {
			if l.links[i].Entry != nil && l.links[i].Entry.ID == a.ID {
				l.links[i].Entry, l.links[i].Parts = &a, &parts
			}
		}
		if r := judge(l.links, ChainPoint{}, l.ends()); r.Whole || r.Fault != FaultEntry || r.Entry != "a-1" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// Shipments and codes go with a user, never alone.
	l := erasedLog(t)
	a, parts := *l.links[5].Entry, *l.links[5].Parts
	parts.After = slices.Clone(parts.After)
	broken(parts.After, 1)
	a.After = []byte(`{"a":1,"user":"42","carrier":"","items":["CODE-1"]}`)
	l.add(erased(&a, &parts, "e2"), &a, &parts)
	if r := judge(l.links, ChainPoint{}, l.ends()); r.Whole || r.Fault != FaultEntry {
		t.Errorf("a shipment that went alone: %+v", r)
	}
}

// TestChainAsked: an entry of erase-user asks for one erasure, before it ends, and the pseudonym of an erasure stays.
func TestChainAsked(t *testing.T) {
	for name, forge := range map[string]func(*logOf){
		"by another act": func(l *logOf) {
			a := deposit(7)
			parts := l.begin(a)
			l.add(NewAskRecord(a, parts, "e3", "erased-3"), a, parts)
		},
		"after its end": func(l *logOf) {
			a := deposit(7)
			a.Action = EraseAction
			parts := l.begin(a)
			done := l.end(a, parts, 409, "")
			l.add(NewAskRecord(done, parts, "e3", "erased-3"), done, parts)
		},
		"a second time": func(l *logOf) {
			a := deposit(7)
			a.Action = EraseAction
			parts := l.begin(a)
			l.add(NewAskRecord(a, parts, "e3", "erased-3"), a, parts)
			l.add(NewAskRecord(a, parts, "e4", "erased-4"), a, parts)
		},
		"with another pseudonym": func(l *logOf) {
			a := deposit(7)
			a.Action = EraseAction
			parts := l.begin(a)
			l.add(NewAskRecord(a, parts, "e2", "erased-c"), a, parts)
		},
		"without an entry": func(l *logOf) {
			a := deposit(7)
			a.Action = EraseAction
			parts := SealEntry(a)
			l.add(NewAskRecord(a, &parts, "e3", "erased-3"), a, &parts)
		},
	} {
		l := erasedLog(t)
		forge(l)
		if r := judge(l.links, ChainPoint{}, l.ends()); r.Whole || r.Fault != FaultEntry {
			t.Errorf("an erasure asked for %s: %+v", name, r)
		}
	}
}

// TestChainOlder: entries of which no record has a version keep the rule of before: a record of an erasure that the ledger
// knows replaces any text of theirs, and the report counts them. An erasure of now needs an entry that asked for it, and
// fixes the entry from then on.
func TestChainOlder(t *testing.T) {
	older := func(kind ChainKind, a *AdminAction, salt string) ChainRecord {
		r := plainRecord(a)
		r.Kind, r.Target, r.Before, r.After = kind, chainDigest(salt, a.Target), chainDigest(salt, string(a.Before)), chainDigest(salt, string(a.After))
		return r
	}
	begun := func() (*logOf, *AdminAction) {
		l := &logOf{t: t, links: chainOf(t, 1)}
		a := deposit(7)
		l.add(older(ChainBegin, a, "s1"), a, nil)
		l.links[3].Salt = "s1"
		return l, a
	}
	l, a := begun()
	if r := judge(l.links, ChainPoint{}, l.ends()); !r.Whole || r.Older != 1 {
		t.Errorf("an entry of before: %+v", r)
	}
	other := *a
	other.Before = []byte(`{"a":2}`)
	l.links[3].Entry = &other
	if r := judge(l.links, ChainPoint{}, l.ends()); r.Fault != FaultEntry {
		t.Errorf("an entry of before with another text: %+v", r)
	}
	r := older(ChainErase, &other, "s2")
	r.Erasure = "e9"
	l.add(r, &other, nil)
	l.links[4].Salt = "s2"
	ends := l.ends()
	if r := judge(l.links, ChainPoint{}, ends); r.Fault != FaultEntry || r.BrokenAt != 5 {
		t.Errorf("an erasure of before that the ledger does not know: %+v", r)
	}
	ends.Erasures = []string{"e9"}
	if r := judge(l.links, ChainPoint{}, ends); !r.Whole || r.Older != 1 {
		t.Errorf("an erasure of before: %+v", r)
	}

	l, a = begun()
	now := *a
	if !now.WithoutUser(nil, "42", "erased-42") {
		t.Fatal("the entry does not name the user")
	}
	parts := SealEntry(&now)
	l.add(erased(&now, &parts, "e1"), &now, &parts)
	if r := judge(l.links, ChainPoint{}, l.ends()); r.Fault != FaultEntry {
		t.Errorf("an erasure of now that nobody asked for: %+v", r)
	}
	l, _ = begun()
	l.asks("e1", "erased-42")
	l.add(erased(&now, &parts, "e1"), &now, &parts)
	if r := judge(l.links, ChainPoint{}, l.ends()); !r.Whole || r.Older != 0 {
		t.Errorf("an erasure of now: %+v", r)
	}
	other = now
	other.Target = "/v1/accounts/eve/deposits"
	parts = SealEntry(&other)
	l.add(erased(&other, &parts, "e1"), &other, &parts)
	if r := judge(l.links, ChainPoint{}, l.ends()); r.Fault != FaultEntry {
		t.Errorf("the entry rewritten after it: %+v", r)
	}
}

// TestChainBeyond: what only makes sense because the beginning of the chain was dropped is as old as what was dropped.
// A chain that was cut does not excuse an erasure that nobody asked for.
func TestChainBeyond(t *testing.T) {
	for name, c := range map[string]struct {
		// from is the first record that is left, cutoff where the ledger cut.
		from   int
		cutoff time.Time
		fault  ChainFault
	}{
		"an erasure's first records and its request": {11, time.UnixMilli(6000), ""},
		"records of an entry that is younger":        {11, time.UnixMilli(900), FaultEntry},
	} {
		l := erasedLog(t)
		left := slices.Clone(l.links[c.from:])
		drop := NewDropRecord(c.cutoff, left[0].N, left[0].Prev)
		drop.Unchained = 2
		l.add(drop, nil, nil)
		left = append(left, l.links[len(l.links)-1])
		if r := judge(left, ChainPoint{}, nil); r.Fault != c.fault {
			t.Errorf("without %s: %+v", name, r)
		}
	}
	l := erasedLog(t)
	young := *deposit(9)
	young.At = time.Now()
	l.begin(&young)
	left := slices.Clone(l.links[3:])
	drop := NewDropRecord(time.UnixMilli(6000), left[0].N, left[0].Prev)
	l.add(drop, nil, nil)
	left = append(left, l.links[len(l.links)-1])
	if r := judge(left, ChainPoint{}, nil); !r.Whole {
		t.Fatalf("a chain that was cut: %+v", r)
	}
	a, parts := l.erase(len(l.links)-2, "e3", "42", "erased-3")
	added := l.links[len(l.links)-1]
	left = append(left, added)
	for i := range left {
		if left[i].Entry != nil && left[i].Entry.ID == a.ID {
			left[i].Entry, left[i].EntryN, left[i].Parts = a, added.N, parts
		}
	}
	if r := judge(left, ChainPoint{}, nil); r.Fault != FaultEntry || r.BrokenAt != added.N {
		t.Errorf("an erasure that nobody asked for, in a chain that was cut: %+v", r)
	}
}
