package idgen_test

import (
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/idgen"
)

// Two grants that follow each other have ids that do not: they tell neither
// how many there are nor what the next one is. With the key, an id leads back
// to the place of the claim.
func ExampleNewFeistel() {
	perm, err := idgen.NewFeistel([]byte("a key of 16 byte"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := dibs.NewClaimIDs(perm)
	for seq := range uint32(2) {
		p := dibs.Position{ShardID: dibs.ShardID{Campaign: 7}, Cursor: dibs.Cursor{Epoch: 1, Seq: 100 + seq}}
		id := ids.Encode(p)
		back, err := ids.Decode(id)
		fmt.Println(id, back, err)
	}
	// Output:
	// 3ZAFDAXS0FM27R21 7/0@1.100 <nil>
	// FWFW0A2X60P8529G 7/0@1.101 <nil>
}
