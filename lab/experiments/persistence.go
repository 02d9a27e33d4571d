package experiments

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs/internal/servers"
)

// kept is how many of written keys a restart finds.
type kept struct {
	mode, how string
	args      []string
	// save makes a snapshot after half of the writes.
	save bool
	// lost says whether a power cut takes writes that were answered; nil where a kill
	// does so already.
	lost func(found, writes int) bool
}

// persistence are experiments with what a server keeps.
func persistence() []Experiment {
	const writes = 100
	var list []Experiment
	for _, k := range []kept{
		{mode: "nothing", how: "no snapshot and no log"},
		{mode: "snapshot", how: "RDB, saved after half of the writes", save: true},
		{mode: "log-no", how: "AOF, appendfsync no", args: []string{"--appendonly", "yes", "--appendfsync", "no"}, lost: func(found, _ int) bool { return found == 0 }},
		{mode: "log-everysec", how: "AOF, appendfsync everysec", args: []string{"--appendonly", "yes", "--appendfsync", "everysec"}, lost: func(found, writes int) bool { return found < writes }},
		{mode: "log-always", how: "AOF, appendfsync always", args: servers.RedisAlways, lost: func(found, writes int) bool { return found == writes }},
	} {
		list = append(list, Experiment{
			Group: Redis, Name: "keep-" + k.mode, own: true, Claim: claims[k.mode],
			run: func(ctx context.Context, b *bench) (Seen, error) { return k.run(ctx, b, writes) },
		})
	}
	return list
}

var claims = map[string]string{
	"nothing":      "Without a snapshot or a log a restart finds nothing: no transaction is durable",
	"snapshot":     "A snapshot loses all that came after it",
	"log-no":       "A log without fsync survives the server's death; a power cut takes what the system had not written yet, up to half a minute",
	"log-everysec": "A log that is synced each second survives the server's death; a power cut takes up to two seconds",
	"log-always":   "A log that is synced before each answer loses nothing, and costs a sync for each answer that comes alone",
}

// run writes, kills the server as a crash does, starts it again and counts; then the same
// with the power cut.
func (k *kept) run(ctx context.Context, b *bench, writes int) (seen Seen, err error) {
	own, err := b.start(k.args...)
	if err != nil {
		return seen, err
	}
	defer own.Kill()
	each, err := k.write(ctx, own, writes)
	if err != nil {
		return seen, err
	}
	own.Kill()
	found, err := restarted(ctx, own)
	if err != nil {
		return seen, err
	}
	want := map[string]int{"nothing": 0, "snapshot": writes / 2}
	n, all := want[k.mode]
	if !all {
		n = writes
	}
	seen.Broken = fmt.Sprintf("%s: of %d writes, all answered, a killed server finds %d again", k.how, writes, found)
	seen.Right = fmt.Sprintf("%s for a write that waits for its answer", each.Round(10*time.Microsecond))
	if err := check(found == n, "%d of %d are there", found, n); err != nil || k.lost == nil {
		return seen, err
	}
	return k.powerless(ctx, b, writes, seen)
}

// powerless adds what a power cut leaves to what was seen. It needs the library of
// servers.Disk, which gcc compiles: without it this part is left out, and said so.
func (k *kept) powerless(ctx context.Context, b *bench, writes int, seen Seen) (Seen, error) {
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		seen.Broken += "; what a power cut leaves is shown on Linux with gcc"
		return seen, nil
	}
	// A sync may come by chance between the last write and the cut.
	var found int
	for try := 0; try < 3; try++ {
		var err error
		if found, err = k.cut(ctx, b, writes); err != nil {
			return seen, err
		}
		if k.lost(found, writes) {
			seen.Broken += fmt.Sprintf(", and after a power cut %d", found)
			return seen, nil
		}
	}
	return seen, check(false, "after a power cut %d of %d are there", found, writes)
}

// cut writes, cuts the power at once and returns how many writes are there afterwards.
func (k *kept) cut(ctx context.Context, b *bench, writes int) (found int, err error) {
	dir, err := b.folder()
	if err != nil {
		return 0, err
	}
	own, disk, err := servers.StartRedisOnDisk(dir, k.args...)
	if err != nil {
		return 0, err
	}
	defer own.Kill()
	if _, err := k.write(ctx, own, writes); err != nil {
		return 0, err
	}
	if _, err := disk.PowerLoss(); err != nil {
		return 0, err
	}
	return restarted(ctx, own)
}

// write sets so many keys, one after the other, and returns how long each took.
func (k *kept) write(ctx context.Context, to *servers.Redis, writes int) (each time.Duration, err error) {
	c, err := dial(ctx, to.URL())
	if err != nil {
		return 0, err
	}
	defer c.close()
	began := time.Now()
	for i := range writes {
		if err := c.want("OK", "SET", "k"+strconv.Itoa(i), "v"); err != nil {
			return 0, err
		}
		if k.save && i == writes/2-1 {
			if err := c.want("OK", "SAVE"); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(began) / time.Duration(writes), nil
}

// restarted starts a server again and returns how many keys it has.
func restarted(ctx context.Context, own *servers.Redis) (keys int, err error) {
	if err := own.Start(); err != nil {
		return 0, err
	}
	c, err := dial(ctx, own.URL())
	if err != nil {
		return 0, err
	}
	defer c.close()
	return strconv.Atoi(c.do("DBSIZE"))
}
