package dibs

import "errors"

// Permutation is a keyed one-to-one mapping of 80-bit blocks. idgen.Feistel
// is the one that dibs ships.
type Permutation interface {
	// Seal maps a block to its image; Open maps it back.
	Seal(block [10]byte) [10]byte
	Open(block [10]byte) [10]byte
}

// ClaimIDs turns positions into the ids that people see, and back. The zero
// value is not usable. Safe for concurrent use.
type ClaimIDs struct{ perm Permutation }

// NewClaimIDs returns ids under a permutation. Every node of one ledger must
// use the same one: the ledger keeps its key.
func NewClaimIDs(p Permutation) ClaimIDs { return ClaimIDs{perm: p} }

// Valid reports whether c was made by NewClaimIDs: its zero value makes no ids.
func (c ClaimIDs) Valid() bool { return c.perm != nil }

// crockford is the base-32 alphabet without I, L, O and U.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// claimIDLen is 80 bits at 5 bits a character.
const claimIDLen = 16

var errClaimID = errors.New("dibs: not a claim id")

// crockfordValue maps a character to its value, 0xff for none. Lower case and
// the look-alikes I, L and O are read as people mean them.
var crockfordValue = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range len(crockford) {
		c := crockford[i]
		t[c] = byte(i)
		if c >= 'A' {
			t[c+'a'-'A'] = byte(i)
		}
	}
	for _, c := range []byte("oO") {
		t[c] = 0
	}
	for _, c := range []byte("iIlL") {
		t[c] = 1
	}
	return t
}()

// Encode returns the claim id of a position: 16 characters.
func (c ClaimIDs) Encode(p Position) string {
	b := c.perm.Seal(p.pack())
	var out [claimIDLen]byte
	for half := range 2 {
		// Five bytes are eight characters exactly.
		s := b[half*5 : half*5+5]
		v := uint64(s[0])<<32 | uint64(s[1])<<24 | uint64(s[2])<<16 | uint64(s[3])<<8 | uint64(s[4])
		for i := 7; i >= 0; i-- {
			out[half*8+i] = crockford[v&31]
			v >>= 5
		}
	}
	return string(out[:])
}

// Decode returns the position of a claim id. Any 16 characters decode to some
// position; whether a claim stands there, only the engine and ledger know.
func (c ClaimIDs) Decode(id string) (Position, error) {
	if len(id) != claimIDLen {
		return Position{}, errClaimID
	}
	var b [10]byte
	for half := range 2 {
		var v uint64
		for i := range 8 {
			d := crockfordValue[id[half*8+i]]
			if d == 0xff {
				return Position{}, errClaimID
			}
			v = v<<5 | uint64(d)
		}
		s := b[half*5 : half*5+5]
		s[0], s[1], s[2], s[3], s[4] = byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
	}
	return unpackPosition(c.perm.Open(b)), nil
}
