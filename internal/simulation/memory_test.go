package simulation

import (
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
)

// TestReplicaIsACopy: what the master does after it was copied is not in the copy.
func TestReplicaIsACopy(t *testing.T) {
	id := dibs.ShardID{Campaign: 1}
	v := &server{scene: newScene(Planted{}), name: "redis1", run: "redis1/1", mem: newMemory()}
	v.mem.shards[id] = &shard{
		state: stateOpen, run: v.run, head: dibs.Cursor{Epoch: 1}, left: 2,
		def:    definition{state: dibs.Published, endsMS: 1 << 50, limit: 2},
		claims: map[dibs.Cursor]*dibs.Holding{}, users: map[string][]*dibs.Holding{}, refs: map[string]bool{},
	}
	claim := func(user string) dibs.Decision {
		t.Helper()
		d, err := v.claim(&dibs.EngineClaim{Shard: id, UserID: user, Quantity: 1}, dibs.Cursor{}, v.scene.now().Add(time.Hour), nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := claim("ann"); d.Outcome != dibs.Granted {
		t.Fatalf("ann: %s", d.Outcome)
	}
	replica := v.mem.clone()
	if err := v.release(dibs.Release{Claim: dibs.Position{ShardID: id, Cursor: dibs.Cursor{Epoch: 1, Seq: 1}}, Epoch: 1}, dibs.Cursor{}); err != nil {
		t.Fatal(err)
	}
	if d := claim("bob"); d.Outcome != dibs.Granted {
		t.Fatalf("bob: %s", d.Outcome)
	}
	s := replica.shards[id]
	if s.left != 1 || s.head.Seq != 1 || len(s.users["bob"]) != 0 || s.users["ann"][0].Released {
		t.Errorf("the copy has %+v", s)
	}
	if n := len(replica.journals[id].entries); n != 1 {
		t.Errorf("the copy's journal has %d entries, want 1", n)
	}
}
