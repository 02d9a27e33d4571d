package dibs

import "testing"

func TestTransferRefs(t *testing.T) {
	m := Transfer{ID: "m-0af", To: 63}
	for _, ref := range []string{m.Leaves(), m.Arrives()} {
		if got, ok := TransferOf(ref); !ok || got != m {
			t.Errorf("the transfer of %q is %+v (%v), want %+v", ref, got, ok, m)
		}
	}
	if m.Leaves() == m.Arrives() {
		t.Errorf("both halves have the ref %q: the second one would be taken for a repeat", m.Leaves())
	}
	// Refs of callers are an idempotency key, which has no space, and what tells
	// changes by one key apart.
	for _, ref := range []string{"", "move", "move -", "move 17", "move -/3", "to", "move a to", "move a to 256", "move a b to 3", "move  to 3", "order-17 -"} {
		if got, ok := TransferOf(ref); ok {
			t.Errorf("the ref %q is taken for the transfer %+v", ref, got)
		}
	}
}
