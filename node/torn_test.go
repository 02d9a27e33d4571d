package node_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

// tornCuts is how often the journal is cut: ten times for each round of SOAK, or else a few times.
func tornCuts(t *testing.T) int {
	t.Helper()
	text := os.Getenv("SOAK")
	if text == "" {
		return 12
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("SOAK must be a number from 1, not %q", text)
	}
	return 10 * n
}

// TestTornJournal cuts the journal's write-ahead log at any byte, as a crash does in the middle of a write, and opens what is
// left: it holds the grants up to some one, each with all that belongs to it, and none behind that one. The node goes on
// selling, and every promise holds.
func TestTornJournal(t *testing.T) {
	var r *testnode.Rig
	testnode.Unsettled(t, func() bool {
		r = testnode.New(t, node.ServiceConfig{SettleEvery: 10 * time.Second})
		r.Publish(r.Sale("phone", 100))
		// What opens the shard is settled at once, and a grant that is there by then with it.
		r.Eventually("the opening is settled", func() bool { return r.Stats("phone").JournalBacklog == 0 })
		for i := range 20 {
			r.Wants(dibs.Granted, "phone", fmt.Sprint("user-", i), "k")
		}
		return r.Stats("phone").JournalBacklog >= 20
	})
	image := t.TempDir()
	copyFolder(t, r.Dir, image)
	whole, err := os.ReadFile(filepath.Join(image, node.JournalFile+"-wal"))
	if err != nil || len(whole) == 0 {
		t.Fatalf("the journal has no write-ahead log of %d bytes: the test would cut nothing: %v", len(whole), err)
	}
	seed := rand.Uint64()
	dice := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, a log of %d bytes", seed, len(whole))
	kept, lost := 0, 0
	for range tornCuts(t) {
		at := dice.IntN(len(whole) + 1)
		r.Close()
		r.Dir = t.TempDir()
		copyFolder(t, image, r.Dir)
		if err := os.WriteFile(filepath.Join(r.Dir, node.JournalFile+"-wal"), whole[:at], 0o600); err != nil {
			t.Fatal(err)
		}
		r.Open()
		n := prefix(r, at)
		kept, lost = kept+n, lost+20-n
	}
	t.Logf("%d cuts: %d grants kept, %d lost with their bytes, 0 in part", tornCuts(t), kept, lost)
}

// prefix expects the first grants to be there, and none after the first that is missing, and returns how many there are.
func prefix(r *testnode.Rig, cut int) (n int) {
	r.Helper()
	for n < 20 {
		c, err := r.Node.Claims.OfUser(r.Context(), fmt.Sprint("user-", n), dibs.Page{Limit: 10})
		if err != nil {
			r.Fatalf("cut at %d: %v", cut, err)
		}
		if len(c.Items) == 0 {
			break
		}
		n++
	}
	if st := r.Stats("phone"); st.Granted != int64(n) || st.Remaining != int64(100-n) {
		r.Fatalf("cut at %d: the first %d users have claims, and the stats are %+v", cut, n, st)
	}
	for i := range 20 {
		// A repeat finds a grant that is there; one that was cut off is decided anew, once.
		if again := r.Wants(dibs.Granted, "phone", fmt.Sprint("user-", i), "k"); again.Replayed != (i < n) {
			r.Fatalf("cut at %d: user %d of %d is answered %+v", cut, i, n, again)
		}
	}
	r.Verify()
	return n
}

// copyFolder copies the files of a folder as a crash leaves them, without the memory that processes share.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if filepath.Ext(name) == ".db-shm" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(name)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
