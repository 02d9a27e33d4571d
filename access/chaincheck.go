package access

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
)

// ChainFault says what is wrong with the chain.
type ChainFault string

const (
	// FaultHash: a record is not what its hash says, or does not follow the one before.
	FaultHash ChainFault = "hash"
	// FaultGap: records are missing.
	FaultGap ChainFault = "gap"
	// FaultEntry: an entry is not what its last record says.
	FaultEntry ChainFault = "entry_changed"
	// FaultMissing: an entry is gone.
	FaultMissing ChainFault = "entry_missing"
	// FaultStray: the log has entries that the chain does not know.
	FaultStray ChainFault = "entry_added"
	// FaultKnown: the chain does not go through the record that the caller knows.
	FaultKnown ChainFault = "not_the_known_chain"
)

// ChainReport says whether the chain over the admin log is whole.
type ChainReport struct {
	Whole bool `json:"whole"`
	// First and Last are the numbers of the first and the last record, Head is the hash of
	// the last one.
	First   int64  `json:"first" doc:"the first record; it is above 1 when older ones were dropped after their time"`
	Last    int64  `json:"last" doc:"the last record"`
	Head    string `json:"head" doc:"the hash of the last record: with last, what to keep elsewhere"`
	Entries int64  `json:"entries" doc:"entries that are as their last record says"`
	Erased  int64  `json:"erased" doc:"records of erasures, which put pseudonyms in place of users"`
	// Older are entries of which no record has a V.
	Older int64 `json:"older" doc:"entries from before version 2 of the records: whoever may write to the database could replace the texts of these by a made-up erasure"`
	// Unchained are entries from before the chain.
	Unchained int64      `json:"unchained" doc:"entries from before the chain: nothing vouches for them"`
	BrokenAt  int64      `json:"broken_at,omitempty" doc:"the first record that is wrong"`
	Entry     string     `json:"entry,omitempty" doc:"the id of the entry that is wrong"`
	Fault     ChainFault `json:"fault,omitempty" enum:"hash,gap,entry_changed,entry_missing,entry_added,not_the_known_chain" doc:"what is wrong"`
}

// ChainPoint is a record that somebody kept elsewhere.
type ChainPoint struct {
	N    int64
	Hash string
}

// ReadChainPoint reads N:HASH; a point of N 0 for nothing. *Error of InvalidRequest.
func ReadChainPoint(text string) (p ChainPoint, err error) {
	if text == "" {
		return p, nil
	}
	n, hash, _ := strings.Cut(text, ":")
	p.Hash = strings.ToLower(hash)
	_, bad := hex.DecodeString(hash)
	if p.N, err = strconv.ParseInt(n, 10, 64); err != nil || p.N < 1 || bad != nil || len(hash) != len(ChainOrigin) {
		return ChainPoint{}, dibs.Invalid(dibs.Fault{Field: "/known", Problem: dibs.Text{EN: "must be a record's number, a colon and its hash", ZH: "必须是记录编号、冒号和哈希值"}})
	}
	return p, nil
}

// ChainCheck checks a chain link by link, in order. The zero value is ready. Only one
// goroutine may use it.
type ChainCheck struct {
	// Known is a record that the chain has to go through; none when N is 0.
	Known ChainPoint
	// Now is the time of the check, zero for the machine's clock: what was dropped has to be older than entries are kept.
	Now time.Time

	report ChainReport
	first  ChainLink
	last   ChainLink
	// start is the last word of the chain on where it begins: the record that begins it, or
	// the last one that says what was dropped.
	start ChainRecord
	met   bool
	// open has what the records have said of each entry of which more are to come: acts that went on while others were
	// noted, and entries that an erasure changed later.
	open map[string]entrySoFar
	// erasures has, by the id of an erasure, the first of its records without V.
	erasures map[string]ChainRecord
	// asked has, by the id of an erasure, what it puts in place of the user, as a digest.
	asked map[string]string
	// beyond is the youngest record of those that only make sense because records before the chain were dropped.
	beyond ChainRecord
}

// broken notes what is wrong, the first time.
func (c *ChainCheck) broken(n int64, entry string, fault ChainFault) bool {
	if c.report.Fault == "" {
		c.report.BrokenAt, c.report.Entry, c.report.Fault = n, entry, fault
	}
	return false
}

// Add checks the next link. It returns false when the chain is broken, and then nothing
// more needs to be added.
func (c *ChainCheck) Add(l *ChainLink) bool {
	if c.open == nil {
		c.open, c.asked, c.erasures = map[string]entrySoFar{}, map[string]string{}, map[string]ChainRecord{}
	}
	before := c.last
	if c.last = *l; before.N == 0 {
		c.first = *l
	} else if l.N != before.N+1 {
		return c.broken(before.N+1, "", FaultGap)
	} else if l.Prev != before.Hash {
		return c.broken(l.N, "", FaultHash)
	}
	var r ChainRecord
	if l.Hash != chainHash(l.Prev, l.Record) || json.Unmarshal([]byte(l.Record), &r) != nil || r.N != l.N {
		return c.broken(l.N, "", FaultHash)
	}
	if l.N == c.Known.N {
		if c.met = l.Hash == c.Known.Hash; !c.met {
			return c.broken(l.N, "", FaultKnown)
		}
	}
	switch r.Kind {
	case ChainStart, ChainDrop:
		return c.begins(&r)
	case ChainErase:
		c.report.Erased++
		if _, met := c.erasures[r.Erasure]; !met && r.V == 0 {
			c.erasures[r.Erasure] = r
		}
	}
	return c.follows(&r) && c.entry(l, &r)
}

// begins checks a record on where the chain begins. Entries that are not in the chain only ever become fewer, and none
// is dropped before its time, whatever the record says.
func (c *ChainCheck) begins(r *ChainRecord) bool {
	if r.Kind == ChainStart && r.N != 1 {
		return c.broken(r.N, "", FaultHash)
	}
	if r.Kind == ChainDrop {
		cutoff, err := time.Parse(chainTime, r.Cutoff)
		if err != nil || cutoff.After(c.now().Add(-actionKeep)) {
			return c.broken(r.N, "", FaultGap)
		}
	}
	if c.start.Kind != "" && r.Unchained > c.start.Unchained {
		return c.broken(r.N, "", FaultStray)
	}
	c.start = *r
	return true
}

func (c *ChainCheck) now() time.Time {
	if c.Now.IsZero() {
		return time.Now()
	}
	return c.Now
}

// Report says what came of it. ends is nil for a chain whose ledger is not there, such as an
// export.
func (c *ChainCheck) Report(ends *ChainEnds) ChainReport {
	c.report.First, c.report.Last, c.report.Head = c.first.N, c.last.N, c.last.Hash
	begins := c.first.N == 0 || c.first.N == 1 && c.first.Prev == ChainOrigin ||
		c.start.Kind == ChainDrop && c.start.First == c.first.N && c.start.Prev == c.first.Prev
	switch {
	case c.report.Fault != "":
	case !begins:
		c.broken(max(1, c.start.First), "", FaultGap)
	case c.beyond.At != "" && (c.start.Kind != ChainDrop || c.beyond.At >= c.start.Cutoff):
		c.broken(c.beyond.N, c.beyond.Entry, FaultEntry)
	case c.Known.N > 0 && !c.met:
		// It begins after the record that is known, or ends before it. A person who drops records can also write the
		// record that says so: only a known record shows that.
		c.broken(min(c.Known.N, c.last.N+1), "", FaultKnown)
	case ends != nil:
		c.ends(ends)
	default:
		c.texts()
	}
	c.report.Whole = c.report.Fault == ""
	return c.report
}

// ends compares the chain with what the ledger says of its end, and with the entries that
// are not in it.
func (c *ChainCheck) ends(e *ChainEnds) {
	c.report.Unchained = e.Unchained
	switch {
	// A record that was added after the end was read is no fault.
	case c.last.N < e.N:
		c.broken(c.last.N+1, "", FaultGap)
	case c.last.N == e.N && c.last.Hash != e.Hash:
		c.broken(c.last.N, "", FaultHash)
	case len(e.Strays) > 0:
		c.broken(c.last.N, e.Strays[0], FaultStray)
	case c.last.N > 0 && e.Unchained > c.start.Unchained:
		c.broken(cmp.Or(c.start.N, 1), "", FaultStray)
	default:
		c.erasedBy(e)
	}
}

// texts checks that an export has the texts of each entry, beside its last record. With a ledger, an entry that claims a
// later record than there is counts as a stray.
func (c *ChainCheck) texts() {
	var first ChainRecord
	for _, e := range c.open {
		if first.N == 0 || e.is.N < first.N {
			first = e.is
		}
	}
	if first.N > 0 {
		c.broken(first.N, first.Entry, FaultMissing)
	}
}

// erasedBy compares the erasures that records without V name with those of the ledger: a record of none is a forged one.
func (c *ChainCheck) erasedBy(e *ChainEnds) {
	for _, id := range e.Erasures {
		delete(c.erasures, id)
	}
	for _, r := range c.erasures {
		// A record that was added after the end was read is no fault.
		if r.N <= e.N {
			c.broken(r.N, r.Entry, FaultEntry)
		}
	}
}

// chainPage is how many links are read at once. An entry has 128 KiB of texts at most.
const chainPage = 200

// VerifyLog reads the whole chain and says whether it is whole, and goes through the record
// that the caller knows, unless its N is 0.
func (s *Access) VerifyLog(ctx context.Context, known ChainPoint) (r ChainReport, err error) {
	// Records that are dropped while they are read look like a gap: a second look decides.
	for range 2 {
		if r, err = s.verifyLog(ctx, known); err != nil || r.Whole {
			break
		}
	}
	return r, err
}

func (s *Access) verifyLog(ctx context.Context, known ChainPoint) (ChainReport, error) {
	check := ChainCheck{Known: known, Now: s.now()}
	ends, err := s.ledger.ChainEnds(ctx)
	if err != nil {
		return ChainReport{}, err
	}
	for after := int64(0); ; {
		links, err := s.ledger.ChainLinks(ctx, after, chainPage)
		if err != nil {
			return ChainReport{}, err
		}
		for i := range links {
			if !check.Add(&links[i]) {
				return check.Report(ends), nil
			}
			after = links[i].N
		}
		if len(links) < chainPage {
			return check.Report(ends), nil
		}
	}
}

// Chain lists the links of the chain, oldest first.
func (s *Access) Chain(ctx context.Context, page dibs.Page) (dibs.List[ChainLink], error) {
	var after int64
	if page.Cursor != "" {
		var err error
		if after, err = strconv.ParseInt(page.Cursor, 10, 64); err != nil || after < 1 {
			return dibs.List[ChainLink]{}, dibs.Invalid(dibs.Fault{Field: "/cursor", Problem: dibs.Text{EN: "is not one of this list", ZH: "不属于此列表"}})
		}
	}
	limit := cmp.Or(page.Limit, dibs.DefaultPage)
	links, err := s.ledger.ChainLinks(ctx, after, limit)
	l := dibs.List[ChainLink]{Items: links}
	if err == nil && len(links) == limit {
		l.NextCursor = fmt.Sprint(links[limit-1].N)
	}
	return l, err
}
