package idgen_test

import (
	"testing"

	"github.com/dibs-dev/dibs/idgen"
)

func TestUUID(t *testing.T) {
	last := ""
	for range 1000 {
		id, err := idgen.UUID()
		must(t, err)
		if len(id) != 36 || id[14] != '7' || id <= last {
			t.Fatalf("%s comes after %s", id, last)
		}
		last = id
	}
}
