package access

import (
	"slices"
	"strings"

	"github.com/dibs-dev/dibs/internal/slots"
)

// entrySoFar is what the records of an entry have said. is is the latest one, as plainOf has it, with V and the digests.
type entrySoFar struct {
	is           ChainRecord
	ended, asked bool
	// headless: its first records were dropped.
	headless bool
	// pseudonyms are what erasures put in place of users, as digests.
	pseudonyms []string
}

// follows checks a record of an entry against those before it. An entry never changes, except that it ends, once,
// and that erasures change its slots: else a record that is added later, with the entry to match, would rewrite what
// was done by whom.
func (c *ChainCheck) follows(r *ChainRecord) bool {
	before, known := c.open[r.Entry]
	is := before
	is.is = *r
	// An entry from before the chain joins it with its end.
	joins := r.Kind == ChainEnd && c.start.Unchained > 0
	fine := known || r.Kind == ChainBegin || joins || c.cut()
	switch r.Kind {
	case ChainBegin:
		fine = !known
	case ChainEnd:
		fine = fine && !before.ended && before.is.Status == 0
		is.ended = true
	case ChainAsk:
		fine = fine && !before.ended && !before.asked && c.asks(r)
		is.asked = true
	case ChainErase:
		fine = fine && r.Erasure != "" && c.erases(r, &is)
	default:
		fine = false
	}
	if !fine || r.V != 0 && r.V != chainV || known && !agrees(&before.is, r) {
		return c.broken(r.N, r.Entry, FaultEntry)
	}
	if !known && r.Kind != ChainBegin && !joins {
		is.headless = true
		c.goesBeyond(r)
	}
	c.open[r.Entry] = is
	return true
}

// agrees reports whether a record says the same of an entry as the one before, but for its end.
func agrees(before, r *ChainRecord) bool {
	was, is := plainOf(before), plainOf(r)
	if r.Kind == ChainEnd {
		is.Status, is.Reason = was.Status, was.Reason
	}
	if was != is {
		return false
	}
	if before.V == 0 {
		// The digests of an older record tell nothing without its salt, and an erasure may have replaced all texts.
		return true
	}
	return r.V == before.V && r.Target == before.Target && r.Before == before.Before && (r.Kind == ChainEnd || r.After == before.After)
}

// asks checks a record which says that an entry asked for an erasure.
func (c *ChainCheck) asks(r *ChainRecord) bool {
	if r.V == 0 || r.Action != EraseAction || r.Erasure == "" || r.Pseudonym == "" {
		return false
	}
	if was, met := c.asked[r.Erasure]; met && was != r.Pseudonym {
		return false
	}
	c.asked[r.Erasure] = r.Pseudonym
	return true
}

// erases checks a record of an erasure. An entry must have asked for it, unless the record is from before records had
// versions: then the ledger has to know the erasure (erasedBy).
func (c *ChainCheck) erases(r *ChainRecord, is *entrySoFar) bool {
	if r.V == 0 {
		return true
	}
	pseudonym, asked := c.asked[r.Erasure]
	if !asked {
		is.headless = true
		c.goesBeyond(r)
		return c.cut()
	}
	is.pseudonyms = append(slices.Clone(is.pseudonyms), pseudonym)
	return true
}

// cut reports whether the beginning of the chain was dropped: the first records of an entry may be gone with it.
func (c *ChainCheck) cut() bool { return c.first.N > 1 }

// goesBeyond notes a record that only makes sense because others were dropped. Report checks that its entry is as old as
// what was dropped: records that are added to a chain that was cut cannot pass for such ones.
func (c *ChainCheck) goesBeyond(r *ChainRecord) {
	if r.At > c.beyond.At {
		c.beyond = *r
	}
}

// plainOf has what a record says openly of an entry.
func plainOf(r *ChainRecord) ChainRecord {
	return ChainRecord{
		Entry: r.Entry, At: r.At, Key: r.Key, KeyName: r.KeyName, Role: r.Role, Address: r.Address, RequestID: r.RequestID,
		Action: r.Action, Status: r.Status, Reason: r.Reason,
	}
}

// entry compares an entry with its last record.
func (c *ChainCheck) entry(l *ChainLink, r *ChainRecord) bool {
	switch {
	case l.Entry == nil:
		return c.broken(l.N, r.Entry, FaultMissing)
	case l.EntryN > l.N:
		// A later record says how the entry is, and agrees with this one. An entry that claims a record that there is not is
		// a stray. Without V the texts have to be compared: an erasure takes the salt away with what it changes, and an
		// export has none here.
		if r.V == 0 && l.Salt != "" && (chainDigest(l.Salt, l.Entry.Target) != r.Target || chainDigest(l.Salt, string(l.Entry.Before)) != r.Before) {
			return c.broken(l.N, r.Entry, FaultEntry)
		}
		return true
	case l.EntryN < l.N || !c.isAs(l, r):
		return c.broken(l.N, r.Entry, FaultEntry)
	}
	c.report.Entries++
	delete(c.open, r.Entry)
	return true
}

// isAs reports whether the entry of a link is as its record says.
func (c *ChainCheck) isAs(l *ChainLink, r *ChainRecord) bool {
	is := plainRecord(l.Entry)
	is.N, is.V, is.Kind, is.Erasure, is.Pseudonym = r.N, r.V, r.Kind, r.Erasure, r.Pseudonym
	if r.V == 0 {
		c.report.Older++
		is.Target, is.Before, is.After = chainDigest(l.Salt, l.Entry.Target), chainDigest(l.Salt, string(l.Entry.Before)), chainDigest(l.Salt, string(l.Entry.After))
		return is == *r
	}
	if l.Parts == nil || !l.Parts.digests(&is, l.Entry) || is != *r {
		return false
	}
	so := c.open[r.Entry]
	return l.Parts.sealed(l.Entry, func(pseudonym string) bool {
		if slices.Contains(so.pseudonyms, pseudonymDigest(pseudonym)) {
			return true
		}
		if so.headless && strings.HasPrefix(pseudonym, slots.PseudonymPrefix) {
			c.goesBeyond(r)
			return true
		}
		return false
	})
}
