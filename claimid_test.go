package dibs

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plain is a permutation that changes nothing.
type plain struct{}

func (plain) Seal(b [10]byte) [10]byte { return b }
func (plain) Open(b [10]byte) [10]byte { return b }

func positionOf(t *rapid.T) Position {
	return Position{
		ShardID: ShardID{
			Campaign: rapid.Uint32Range(0, MaxCampaignNumber).Draw(t, "campaign"),
			Shard:    rapid.Uint8().Draw(t, "shard"),
		},
		Cursor: Cursor{Epoch: rapid.Uint16Range(0, MaxEpoch).Draw(t, "epoch"), Seq: rapid.Uint32().Draw(t, "seq")},
	}
}

func TestClaimIDsDecodeToTheirPosition(t *testing.T) {
	ids := NewClaimIDs(plain{})
	rapid.Check(t, func(t *rapid.T) {
		p := positionOf(t)
		id := ids.Encode(p)
		if len(id) != claimIDLen || strings.Trim(id, crockford) != "" {
			t.Fatalf("id %q is not %d characters of the alphabet", id, claimIDLen)
		}
		for _, written := range []string{id, strings.ToLower(id), strings.NewReplacer("0", "o", "1", "l").Replace(id)} {
			if got, err := ids.Decode(written); err != nil || got != p {
				t.Fatalf("Decode(%q) = %v, %v; want %v", written, got, err, p)
			}
		}
	})
}

func TestClaimIDLayout(t *testing.T) {
	p := Position{ShardID{Campaign: 1, Shard: 2}, Cursor{Epoch: 3, Seq: 4}}
	// 28 bits of campaign, 8 of shard, 12 of epoch, 32 of seq.
	if got, want := p.pack(), [10]byte{0, 0, 0, 0x10, 0x20, 0x03, 0, 0, 0, 4}; got != want {
		t.Fatalf("packed %x, want %x", got, want)
	}
	if got := NewClaimIDs(plain{}).Encode(p); got != "000004100C000004" {
		t.Fatalf("id %s", got)
	}
}

func TestOthersAreNoClaimIDs(t *testing.T) {
	ids := NewClaimIDs(plain{})
	for _, id := range []string{"", "000002100C00000", "000004100C0000044", "000002100C00000U", "000002100C00000-", "券券券券券1"} {
		if p, err := ids.Decode(id); err == nil {
			t.Errorf("Decode(%q) = %v", id, p)
		}
	}
}
