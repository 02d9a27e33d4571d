package node_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/testnode"
)

// smallDisk mounts a file system of its own, which the test can fill.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Fatalf("mounting a small disk needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill writes until the disk is full and returns what to remove.
func fill(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, 1 << 12, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// On a full disk claims are refused, no granted claim is lost, and with room
// again everything goes on, by itself.
func TestAFullDiskLosesNothing(t *testing.T) {
	dir := smallDisk(t, "200m")
	r := &testnode.Rig{T: t, Dir: dir}
	r.Open()
	t.Cleanup(r.Close)
	r.Publish(r.Sale("phone", 1_000_000))
	yes := map[string]string{}
	try := func(user string) error {
		res, err := r.Node.Claims.Claim(t.Context(), dibs.ClaimRequest{CampaignID: "phone", UserID: user, Key: "k"})
		if err != nil {
			return err
		}
		if res.Outcome != dibs.Granted {
			t.Fatalf("claim of %s: %s", user, res.Outcome)
		}
		yes[user] = res.Claim.ID
		return nil
	}
	for round := range 2 {
		for i := range 50 {
			if err := try(fmt.Sprintf("before-%d-%d", round, i)); err != nil {
				t.Fatal(err)
			}
		}
		ballast := fill(t, dir)
		refused := 0
		for i := 0; refused < 20 && i < 100_000; i++ {
			err := try(fmt.Sprintf("full-%d-%d", round, i))
			if err == nil {
				continue
			}
			if e := r.Fails(err, dibs.Unavailable); e.Effect != dibs.EffectNone {
				t.Fatalf("effect %q: %v", e.Effect, err)
			}
			refused++
		}
		if refused == 0 {
			t.Fatal("the full disk refused nobody: the test proves nothing")
		}
		if h := r.Node.Health(t.Context()); h.Ready || !strings.Contains(h.Dependencies["engine"].Error, "journal is not written") {
			t.Errorf("health on a full disk: %+v", h)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if err := try(fmt.Sprintf("after-%d", round)); err != nil {
			t.Fatalf("with room again: %v", err)
		}
	}
	keepsAll(r, yes)
	r.Reopen()
	keepsAll(r, yes)
}

// keepsAll checks that every claim answered granted is there, and no other.
func keepsAll(r *testnode.Rig, yes map[string]string) {
	r.Helper()
	for user, id := range yes {
		c, err := r.Node.Claims.Find(r.Context(), id)
		if err != nil || c.UserID != user {
			r.Fatalf("claim %s of %s: %+v, %v", id, user, c, err)
		}
	}
	if st := r.Stats("phone"); st.Granted != int64(len(yes)) {
		r.Fatalf("%d are granted, %d were answered", st.Granted, len(yes))
	}
	r.Verify()
	if h := r.Node.Health(r.Context()); !h.Ready {
		r.Errorf("health with room: %+v", h)
	}
}
