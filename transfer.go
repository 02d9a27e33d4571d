package dibs

import (
	"strconv"
	"strings"
)

// Transfer moves units from one shard of a campaign to another. The donor's engine
// decides it as a withdrawal by the ref Leaves; the transaction that settles this
// withdrawal adds the units to the recipient, and commands its engine to restock by
// the ref Arrives. Each of the two counts once, as every adjustment does.
type Transfer struct {
	// ID names the transfer; no other one of the campaign has the same. It has no
	// space in it.
	ID string
	// To is the shard that receives the units.
	To uint8
}

// The parts of a transfer's ref, with its id and its recipient between them: more
// spaces than a ref has that is made of an idempotency key.
const (
	transferBegins = "move "
	transferTo     = " to "
	transferLeaves = " -"
)

// Leaves is the ref of the donor's withdrawal.
func (t Transfer) Leaves() string { return t.Arrives() + transferLeaves }

// Arrives is the ref of the recipient's restock.
func (t Transfer) Arrives() string {
	return transferBegins + t.ID + transferTo + strconv.Itoa(int(t.To))
}

// TransferOf returns the transfer that an adjustment by a ref is a half of; false
// when it is none. The sign of the adjustment says which half it is.
func TransferOf(ref string) (Transfer, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(ref, transferLeaves), transferBegins)
	if !ok {
		return Transfer{}, false
	}
	id, to, ok := strings.Cut(rest, transferTo)
	n, err := strconv.ParseUint(to, 10, 8)
	if !ok || err != nil || id == "" || strings.Contains(id, " ") {
		return Transfer{}, false
	}
	return Transfer{ID: id, To: uint8(n)}, true
}
