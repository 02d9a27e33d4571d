package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The admin log is a chain: each time an entry is written, a record of what it says then is
// added, with a hash over the record and the hash of the record before. A changed, missing or
// added entry does not fit its record any more, and a changed record does not fit the next one.
//
// A person who may write to the database can still write the whole chain afresh. The hash
// of a record that is kept elsewhere, as an export or a printed number, shows that: the
// chain has to go through it.

// ChainKind says why a record was added.
type ChainKind string

const (
	// ChainBegin is an entry as it was written first.
	ChainBegin ChainKind = "begin"
	// ChainEnd is an entry with what came of the act.
	ChainEnd ChainKind = "end"
	// ChainAsk is an entry of EraseAction, and says which erasure it asked for. It comes before the first record of that
	// erasure.
	ChainAsk ChainKind = "ask"
	// ChainErase is an entry after an erasure put a pseudonym in place of a user.
	ChainErase ChainKind = "erase"
	// ChainStart is the first record. Entries from before it are not in the chain.
	ChainStart ChainKind = "start"
	// ChainDrop says that records were dropped with their entries, which were too old.
	ChainDrop ChainKind = "drop"
)

// EraseAction is the operation that erases a user. No erasure changes the log without an entry of it.
const EraseAction = "erase-user"

// AskServes is for how long after an entry of EraseAction its erasure may change the log; then another entry is needed.
// Ledgers keep a ChainAsk that much longer than other records, so that it does not go before those of its erasure.
const AskServes = 30 * 24 * time.Hour

// chainV is the version of the records of entries. Those without one have digests of whole texts: an erasure replaces
// any text of theirs. Since version 2 it replaces the slots alone (seals.go).
const chainV = 2

// ChainRecord is one record, as JSON in this order.
type ChainRecord struct {
	N    int64     `json:"n"`
	V    int       `json:"v,omitempty"`
	Kind ChainKind `json:"kind"`
	// Entry is the entry's id; empty for start and drop.
	Entry     string `json:"entry,omitempty"`
	At        string `json:"at,omitempty"`
	Key       string `json:"key,omitempty"`
	KeyName   string `json:"key_name,omitempty"`
	Role      Role   `json:"role,omitempty"`
	Address   string `json:"address,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Action    string `json:"action,omitempty"`
	Status    int    `json:"status,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// Target, Before and After are digests that stay when an erasure changes the texts. Empty for an
	// empty text. In records without V they are HMACs of the whole texts, and new after an erasure.
	Target string `json:"target,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Unchained is, for start and drop, how many entries are not in the chain at most.
	Unchained int64 `json:"unchained,omitempty"`
	// First is, for drop, the first record that was left, and Prev its Prev. Only entries from before Cutoff were dropped.
	First  int64  `json:"first,omitempty"`
	Prev   string `json:"prev,omitempty"`
	Cutoff string `json:"cutoff,omitempty"`
	// Erasure is, for ask and erase, the id of the erasure, and Pseudonym, for ask, a digest of what it puts in place of
	// the user.
	Erasure   string `json:"erasure,omitempty"`
	Pseudonym string `json:"pseudonym,omitempty"`
}

// NewDropRecord returns the record which says that entries from before a time were dropped, and which record is the first
// one that is left.
func NewDropRecord(before time.Time, first int64, prev string) ChainRecord {
	return ChainRecord{Kind: ChainDrop, First: first, Prev: prev, Cutoff: before.UTC().Format(chainTime)}
}

// ChainLink is a record as the ledger keeps it.
type ChainLink struct {
	N int64
	// Prev is the Hash of the link before, ChainOrigin for the first one. Both are in
	// hexadecimal digits.
	Prev, Hash string
	// Record is a ChainRecord as JSON. Its bytes count, not what they mean.
	Record string
	// Salt is that of the digests of a record without V, in hexadecimal digits; empty after an erasure.
	Salt string
	// Parts are the seals of the entry; nil when all its records are without V.
	Parts *EntryParts
	// Entry is the entry as the log has it now; nil where there is none. EntryN is the number
	// of the record that says how it is.
	Entry  *AdminAction
	EntryN int64
}

// ChainOrigin is the Prev of the first record.
var ChainOrigin = strings.Repeat("0", 2*sha256.Size)

// ChainEnds says where the chain ends, and what is beside it.
type ChainEnds struct {
	// N and Hash are those of the last record; 0 and empty for a chain without records.
	N    int64
	Hash string
	// Unchained is how many entries say that they are not in the chain; Strays names some
	// that say they are, and are not.
	Unchained int64
	Strays    []string
	// Erasures are the ids of all erasures of users, done ones too.
	Erasures []string
}

// chainTime is how records write times.
const chainTime = "2006-01-02T15:04:05.000Z"

// NewChainRecord returns the record of an entry as it is, of which parts are the seals.
func NewChainRecord(kind ChainKind, a *AdminAction, parts *EntryParts) ChainRecord {
	r := plainRecord(a)
	r.V, r.Kind = chainV, kind
	parts.digests(&r, a)
	return r
}

// NewAskRecord returns the record which says that an entry of EraseAction asked for an erasure.
func NewAskRecord(a *AdminAction, parts *EntryParts, erasure, pseudonym string) ChainRecord {
	r := NewChainRecord(ChainAsk, a, parts)
	r.Erasure, r.Pseudonym = erasure, pseudonymDigest(pseudonym)
	return r
}

// plainRecord has what a record says openly of an entry.
func plainRecord(a *AdminAction) ChainRecord {
	return ChainRecord{
		Entry: a.ID, At: a.At.UTC().Format(chainTime), Key: a.Key, KeyName: a.KeyName, Role: a.Role, Address: a.Address, RequestID: a.RequestID,
		Action: a.Action, Status: a.Status, Reason: a.Reason,
	}
}

// chainDigest is the digest of a text in records without V: HMAC-SHA-256 under a salt, in hexadecimal digits. Without the
// salt, which an erasure deletes, texts cannot be tried against it.
func chainDigest(salt, text string) string {
	if text == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// Link returns the link that adds a record after another link.
func (r ChainRecord) Link(n int64, prev string) (ChainLink, error) {
	r.N = n
	raw, err := json.Marshal(&r)
	if err != nil {
		return ChainLink{}, fmt.Errorf("a record of the admin log: %w", err)
	}
	return ChainLink{N: n, Prev: prev, Hash: chainHash(prev, string(raw)), Record: string(raw)}, nil
}

// chainHash is the hash of a link: the SHA-256 of prev and record, one after the other.
func chainHash(prev, record string) string {
	sum := sha256.Sum256([]byte(prev + record))
	return hex.EncodeToString(sum[:])
}

// ChainLinkView is a link as exported. `printf %s "$prev$record" | sha256sum` gives hash.
type ChainLinkView struct {
	N      int64  `json:"n"`
	Prev   string `json:"prev" doc:"the hash of the record before"`
	Record string `json:"record" doc:"what the entry says, as JSON text: its bytes are hashed"`
	Hash   string `json:"hash" doc:"SHA-256 of prev and record"`
	// The texts of the entry, with the last record of it alone.
	Parts  *EntryParts `json:"parts,omitempty" doc:"for each place of target, before and after that an erasure may change, salt.digest: HMAC-SHA-256, 16 bytes of it, as base64; without the salt after an erasure"`
	Salt   string      `json:"salt,omitempty" doc:"only with records without v: the key of the digests of target, before and after: HMAC-SHA-256"`
	Target string      `json:"target,omitempty"`
	Before string      `json:"before,omitempty" doc:"the thing before the action, as JSON text"`
	After  string      `json:"after,omitempty" doc:"the thing after it"`
}

// View returns the link as exported.
func (l *ChainLink) View() ChainLinkView {
	v := ChainLinkView{N: l.N, Prev: l.Prev, Record: l.Record, Hash: l.Hash}
	if l.Entry != nil && l.EntryN == l.N {
		v.Salt, v.Parts, v.Target, v.Before, v.After = l.Salt, l.Parts, l.Entry.Target, string(l.Entry.Before), string(l.Entry.After)
	}
	return v
}

// Link returns an exported link as one that can be checked: the entry's open parts are those
// of the record, since nothing else has them.
func (v *ChainLinkView) Link() ChainLink {
	l := ChainLink{N: v.N, Prev: v.Prev, Hash: v.Hash, Record: v.Record, Salt: v.Salt, Parts: v.Parts}
	var r ChainRecord
	if json.Unmarshal([]byte(v.Record), &r) != nil || r.Entry == "" {
		return l
	}
	// A later record of the entry has the texts.
	l.Entry, l.EntryN = &AdminAction{}, v.N+1
	if v.Salt != "" || v.Parts != nil {
		at, err := time.Parse(chainTime, r.At)
		if err != nil {
			// The check of the record finds that the times differ.
			at = time.Time{}
		}
		l.Entry, l.EntryN = &AdminAction{
			ID: r.Entry, At: at, Key: r.Key, KeyName: r.KeyName, Role: r.Role, Address: r.Address, RequestID: r.RequestID,
			Action: r.Action, Status: r.Status, Reason: r.Reason, Target: v.Target, Before: []byte(v.Before), After: []byte(v.After),
		}, v.N
	}
	return l
}
