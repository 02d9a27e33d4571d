package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/dibs-dev/dibs/internal/slots"
)

// A record has a digest of each text of its entry that stays the same when a user is erased. The digest is over the
// frame of the text, which no erasure changes, and over a commitment to what is in each slot: to users, shipments and
// codes. The salt of a commitment is beside the entry. An erasure deletes the salts of what it changed, so that nobody
// can try names against the commitments that stay.

// Seal is a commitment to what is in a slot: its salt, a dot, and its digest, HMAC-SHA-256 under the salt, of which 16
// bytes count. Both are base64. An erasure that changes what is in the slot deletes the salt.
type Seal string

var sealText = base64.RawURLEncoding

// sealBytes is how long a salt and a digest are.
const sealBytes = 16

func newSeal(value string) Seal {
	var raw [sealBytes]byte
	// crypto/rand.Read never fails: it stops the program instead.
	_, _ = rand.Read(raw[:])
	salt := sealText.EncodeToString(raw[:])
	return Seal(salt + "." + sealDigest(salt, value))
}

func sealDigest(salt, value string) string {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(value))
	return sealText.EncodeToString(mac.Sum(nil)[:sealBytes])
}

func (s Seal) parts() (salt, digest string) {
	salt, digest, _ = strings.Cut(string(s), ".")
	return salt, digest
}

// fits reports whether a value is the one that the seal was made of. It is false for a seal without its salt.
func (s Seal) fits(value string) bool {
	salt, digest := s.parts()
	return salt != "" && sealDigest(salt, value) == digest
}

// broken reports whether an erasure has deleted the salt.
func (s Seal) broken() bool { return strings.HasPrefix(string(s), ".") }

// EntryParts are the seals of the slots of an entry's texts, in their order.
type EntryParts struct {
	Target []Seal `json:"target,omitempty"`
	Before []Seal `json:"before,omitempty"`
	After  []Seal `json:"after,omitempty"`
}

// SealEntry makes the seals of an entry that has none.
func SealEntry(a *AdminAction) (p EntryParts) {
	p.Target = sealsOf(slots.Target(a.Target))
	p.Before = sealsOf(slots.Body(string(a.Before)))
	p.SealAfter(a)
	return p
}

// SealAfter makes the seals of what came of an act.
func (p *EntryParts) SealAfter(a *AdminAction) { p.After = sealsOf(slots.Body(string(a.After))) }

func sealsOf(t slots.Text) (seals []Seal) {
	for i := range t.Slots {
		seals = append(seals, newSeal(t.Value(i)))
	}
	return seals
}

// WithoutUser puts a pseudonym in a user's place in an entry, and takes the items of claims away where the entry names
// the user. It deletes the salts of what it changed from parts, unless parts is nil. It returns false, and changes
// nothing, for an entry that does not name the user.
func (a *AdminAction) WithoutUser(parts *EntryParts, user, pseudonym string) bool {
	if parts == nil {
		parts = &EntryParts{}
	}
	target := slots.Target(a.Target)
	before, after := slots.Body(string(a.Before)), slots.Body(string(a.After))
	named := false
	for _, t := range []struct {
		text  *slots.Text
		seals *[]Seal
	}{{&target, &parts.Target}, {&before, &parts.Before}, {&after, &parts.After}} {
		erased, changed := t.text.Erase(user, pseudonym, true)
		if len(changed) == 0 {
			continue
		}
		named = true
		*t.text = erased
		*t.seals = slices.Clone(*t.seals)
		for _, i := range changed {
			if i < len(*t.seals) {
				_, digest := (*t.seals)[i].parts()
				(*t.seals)[i] = Seal("." + digest)
			}
		}
	}
	if named {
		a.Target, a.Before, a.After = target.Text, bodyOf(before.Text), bodyOf(after.Text)
	}
	return named
}

// bodyOf is a text as a body; nil for none.
func bodyOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}

// textDigest is the digest of a text in a record: SHA-256 over each part of its frame with the part's length, and after
// each but the last one the digest of a seal. Empty for an empty text. ok is false when the seals are not those of the
// text.
func textDigest(t *slots.Text, seals []Seal) (digest string, ok bool) {
	if t.Text == "" || len(seals) != len(t.Slots) {
		return "", len(seals) == len(t.Slots)
	}
	sum := sha256.New()
	part := func(text string) { sum.Write([]byte(strconv.Itoa(len(text)) + ":" + text)) }
	rest := 0
	for i, s := range t.Slots {
		part(t.Text[rest:s.From])
		_, digest := seals[i].parts()
		part(digest)
		rest = s.To
	}
	part(t.Text[rest:])
	return hex.EncodeToString(sum.Sum(nil)), true
}

// digests fills the digests of an entry's texts into a record.
func (p *EntryParts) digests(r *ChainRecord, a *AdminAction) (ok bool) {
	target, before, after := slots.Target(a.Target), slots.Body(string(a.Before)), slots.Body(string(a.After))
	var fits [3]bool
	r.Target, fits[0] = textDigest(&target, p.Target)
	r.Before, fits[1] = textDigest(&before, p.Before)
	r.After, fits[2] = textDigest(&after, p.After)
	return fits == [3]bool{true, true, true}
}

// sealed reports whether each slot has what its seal says, or else what an erasure left there. known says whether a
// pseudonym is that of an erasure of the entry.
func (p *EntryParts) sealed(a *AdminAction, known func(pseudonym string) bool) bool {
	return sealedText(slots.Target(a.Target), p.Target, known) &&
		sealedText(slots.Body(string(a.Before)), p.Before, known) && sealedText(slots.Body(string(a.After)), p.After, known)
}

func sealedText(t slots.Text, seals []Seal, known func(pseudonym string) bool) bool {
	erased, ofUser := false, false
	for i, seal := range seals {
		if !seal.broken() {
			if !seal.fits(t.Value(i)) {
				return false
			}
			continue
		}
		pseudonym, ok := t.Erased(i)
		if !ok || t.Slots[i].Kind.OfUser() && !known(pseudonym) {
			return false
		}
		erased, ofUser = true, ofUser || t.Slots[i].Kind.OfUser()
	}
	// Shipments and codes go with a user, never alone.
	return ofUser || !erased
}

// pseudonymDigest stands for a pseudonym in the record that names its erasure. A pseudonym is random.
func pseudonymDigest(pseudonym string) string {
	sum := sha256.Sum256([]byte(pseudonym))
	return hex.EncodeToString(sum[:])
}
