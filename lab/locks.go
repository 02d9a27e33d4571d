package lab

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/settings"
	"github.com/dibs-dev/dibs/internal/wait"
	"github.com/dibs-dev/dibs/lock"
)

// Lockers are the kinds of locks that Locks compares.
func Lockers() []string {
	return []string{redisLocker, majorityLocker, MariaDB, Postgres, zooLocker}
}

// The kinds of locks that are not called like a database.
const (
	redisLocker    = "redis"
	majorityLocker = "majority"
	zooLocker      = "zookeeper"
)

// LocksConfig says what Locks does. Zero fields take defaults; Holder is required.
type LocksConfig struct {
	// Lockers are some of Lockers; empty means all.
	Lockers []string
	// Contenders want one lock at once; 0 means 50.
	Contenders int
	// Lifetime is that of the locks that have one; 0 means a second.
	Lifetime time.Duration
	// Servers are the addresses to use, by locker; a kind without any has servers
	// of its own. Locks are taken there, and a table of fences is made.
	Servers map[string][]string
	// Holder returns a command, not yet started, whose process calls HoldLock with these words:
	// only another process can be killed or paused while it holds the lock.
	Holder func(kind string, addresses []string) *exec.Cmd
	// Progress takes a line for each kind; nil shows nothing.
	Progress io.Writer
}

// Validate returns everything that is wrong, by the names of the flags.
func (c *LocksConfig) Validate() []settings.Fault {
	var fs []settings.Fault
	for _, name := range c.Lockers {
		if !slices.Contains(Lockers(), name) {
			fs = append(fs, settings.Fault{Key: "--lockers", Problem: fmt.Sprintf("there is no locker %q%s; there are %s", name, suggest(name, Lockers()), strings.Join(Lockers(), ", "))})
		}
	}
	for name, list := range c.Servers {
		if name == majorityLocker && len(list) > 0 && len(list) < 3 {
			fs = append(fs, settings.Fault{Key: "--majority", Problem: fmt.Sprintf("must be three addresses or more, with commas between, not %d", len(list))})
		}
	}
	if c.Contenders < 0 || c.Contenders > 10_000 {
		fs = append(fs, settings.Fault{Key: "--contenders", Problem: "must be from 1 to 10000"})
	}
	if c.Lifetime != 0 && (c.Lifetime < 200*time.Millisecond || c.Lifetime > time.Minute) {
		fs = append(fs, settings.Fault{Key: "--lifetime", Problem: "must be from 200ms to 1m"})
	}
	return fs
}

// LockResult is what was seen of one kind of lock, on one machine. Times compare within one run.
type LockResult struct {
	Locker string `json:"locker"`
	// PerSecond is how often one caller takes it and gives it back.
	PerSecond float64 `json:"lock_unlock_per_second"`
	// The time from an Unlock to the next Lock among the contenders.
	HandOverP50MS float64 `json:"hand_over_p50_ms"`
	HandOverP99MS float64 `json:"hand_over_p99_ms"`
	// Together is how often two had it at once.
	Together int64 `json:"two_at_once"`
	// KilledMS is until the next one has it when its holder is killed; PausedMS
	// when its holder is paused, and nil when the holder keeps it.
	KilledMS float64  `json:"killed_ms"`
	PausedMS *float64 `json:"paused_ms"`
	// Stale says that the paused holder wrote when it went on, after the next
	// one; Refused, that its fence was lower, so that a store refuses it.
	Stale   bool `json:"stale_write"`
	Refused bool `json:"refused_by_fence"`
}

// Locks runs every kind on servers of its own, or on those of cfg.Servers, one kind after the other.
// It returns what it has at the first error: ErrNoServer when a server is missing. It stops the
// servers that it started, the latest first, before it removes their folder.
func Locks(ctx context.Context, cfg LocksConfig) (results []LockResult, err error) {
	// Without names, the kinds that can be had are compared.
	all := len(cfg.Lockers) == 0
	if all {
		cfg.Lockers = Lockers()
	}
	cfg.Contenders = cmp.Or(cfg.Contenders, 50)
	cfg.Lifetime = cmp.Or(cfg.Lifetime, time.Second)
	cfg.Progress = cmp.Or(cfg.Progress, io.Discard)
	dir, err := os.MkdirTemp("", "dibs-lab-")
	if err != nil {
		return nil, err
	}
	// Run from the last to the first: the folder goes when nothing uses it.
	stops := []func() error{func() error { return os.RemoveAll(dir) }, servers.StopAll}
	defer func() {
		for i := len(stops) - 1; i >= 0; i-- {
			err = errors.Join(err, stops[i]())
		}
	}()
	at, err := cfg.addresses(all, func(kind string) ([]string, error) {
		addresses, stop, err := lockServers(dir, kind)
		// Also with an error: some of the servers may have started.
		stops = append(stops, stop)
		return addresses, err
	})
	if err != nil {
		return nil, err
	}
	for _, kind := range cfg.Lockers {
		addresses, there := at[kind]
		if !there {
			continue
		}
		fmt.Fprintln(cfg.Progress, kind)
		r, err := cfg.try(ctx, kind, addresses)
		if err != nil {
			return results, fmt.Errorf("%s: %w", kind, err)
		}
		results = append(results, *r)
	}
	return results, nil
}

// addresses are the servers of each kind, by its name: those that cfg.Servers names, else those that
// start starts. A kind that cannot be started is left out where all are compared, and is ErrNoServer
// where it was named. All start before the first is measured: one that is missing must not show after
// minutes.
func (c *LocksConfig) addresses(all bool, start func(kind string) ([]string, error)) (map[string][]string, error) {
	at := map[string][]string{}
	var missing error
	for _, kind := range c.Lockers {
		if given := c.Servers[kind]; len(given) > 0 {
			at[kind] = given
			continue
		}
		addresses, err := start(kind)
		switch {
		case err == nil:
			at[kind] = addresses
		case all:
			missing = err
			fmt.Fprintf(c.Progress, "%s is left out: install it, or name one that runs by --%s (%v)\n", kind, kind, err)
		default:
			return nil, fmt.Errorf("%w: %s: install it, or name one that runs by --%s, or leave it out with --lockers: %w", ErrNoServer, kind, kind, err)
		}
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("%w: none of %s is installed: %w", ErrNoServer, strings.Join(c.Lockers, ", "), missing)
	}
	return at, nil
}

// lockServers starts what a kind needs. stop is never nil, also with an error: it ends what was
// started before the error. Databases have no stop of their own, as Locks stops them all.
func lockServers(dir, kind string) (addresses []string, stop func() error, err error) {
	stop = func() error { return nil }
	switch kind {
	case redisLocker:
		return ownRedis(dir, kind, 1)
	case majorityLocker:
		return ownRedis(dir, kind, 3)
	case zooLocker:
		z, err := servers.StartZooKeeper(filepath.Join(dir, kind))
		if err != nil {
			return nil, stop, err
		}
		return []string{z.URL()}, func() error { z.Kill(); return nil }, nil
	}
	start := servers.MariaDB
	if kind == Postgres {
		start = servers.Postgres
	}
	s, err := start()
	if err != nil {
		return nil, stop, err
	}
	url, _, _, err := s.Database()
	return []string{url}, stop, err
}

// ownRedis starts so many servers that know nothing of each other: a majority counts only if no
// server copies from another.
func ownRedis(dir, kind string, n int) (addresses []string, stop func() error, err error) {
	var all []*servers.Redis
	stop = func() error {
		for _, r := range all {
			r.Kill()
		}
		return nil
	}
	for i := range n {
		r, err := servers.StartRedis(filepath.Join(dir, kind+strconv.Itoa(i)))
		if err != nil {
			return nil, stop, err
		}
		all = append(all, r)
		addresses = append(addresses, r.URL())
	}
	return addresses, stop, nil
}

// openLocker opens a kind of lock. life does not matter for databases: their locks end with the
// connection.
func openLocker(ctx context.Context, kind string, addresses []string, life time.Duration) (lock.Locker, error) {
	// Where there is one address, the commas are its own.
	one := strings.Join(addresses, ",")
	switch kind {
	case redisLocker:
		return lock.OpenRedis(lock.RedisConfig{URL: one, Lifetime: life})
	case majorityLocker:
		return lock.OpenMajority(lock.RedisConfig{Lifetime: life}, addresses...)
	case zooLocker:
		return lock.OpenZooKeeper(ctx, lock.ZooKeeperConfig{URL: one, Lifetime: life})
	}
	return lock.OpenSQL(ctx, one)
}

// try makes the four experiments with one kind of lock, one after the other, each on a lock of its
// own name, except that killed and paused share one.
func (c *LocksConfig) try(ctx context.Context, kind string, addresses []string) (r *LockResult, err error) {
	// Only the holder has a short lifetime. The others must not lose a lock because the machine stands
	// still for a while: two holders at once would then be counted for the wrong reason.
	l, err := openLocker(ctx, kind, addresses, max(c.Lifetime, patientLifetime))
	if err != nil {
		return nil, fmt.Errorf("%w: nothing answers at --%s: start it, correct the address, or leave --%s out to have one started: %w", ErrNoServer, kind, kind, err)
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	r = &LockResult{Locker: kind}
	for _, step := range []func(context.Context, lock.Locker, *LockResult) error{c.alone, c.crowd} {
		if err := step(ctx, l, r); err != nil {
			return r, err
		}
	}
	if err := c.killed(ctx, l, kind, addresses, r); err != nil {
		return r, fmt.Errorf("with a killed holder: %w", err)
	}
	if err := c.paused(ctx, l, kind, addresses, r); err != nil {
		return r, fmt.Errorf("with a paused holder: %w", err)
	}
	return r, nil
}

// alone takes and gives back a lock that nobody else wants, for a second: the price of the lock itself.
func (c *LocksConfig) alone(ctx context.Context, l lock.Locker, r *LockResult) error {
	begun, n := time.Now(), 0
	for time.Since(begun) < time.Second {
		h, err := l.Lock(ctx, "dibs-lab-alone", lock.Options{})
		if err != nil {
			return err
		}
		if err := h.Unlock(ctx); err != nil {
			return err
		}
		n++
	}
	r.PerSecond = float64(n) / time.Since(begun).Seconds()
	return nil
}

// patientLifetime is longer than machines stand still.
const patientLifetime = time.Minute

// turns is how often each contender takes the lock, and heldFor how long it keeps it: as long as a short
// transaction.
const (
	turns   = 10
	heldFor = time.Millisecond
)

// crowd lets many callers want one lock, and measures the hand-overs and whether two ever had it at
// once. inside counts the holders: without the lock's own guarantee nothing keeps it at one, since each
// keeps the lock for a while. mu guards given and took: two holders at once must not become a data race
// of the lab.
func (c *LocksConfig) crowd(ctx context.Context, l lock.Locker, r *LockResult) error {
	var group errgroup.Group
	var inside, together atomic.Int64
	var mu sync.Mutex
	var given time.Time
	var took []time.Duration
	turn := func() error {
		h, err := l.Lock(ctx, "dibs-lab-crowd", lock.Options{})
		if err != nil {
			return err
		}
		mu.Lock()
		if !given.IsZero() {
			took = append(took, time.Since(given))
		}
		mu.Unlock()
		if inside.Add(1) > 1 {
			together.Add(1)
		}
		wait.Sleep(ctx, heldFor)
		inside.Add(-1)
		mu.Lock()
		given = time.Now()
		mu.Unlock()
		// given was taken just before, so a hand-over includes the call of Unlock.
		return h.Unlock(ctx)
	}
	for range c.Contenders {
		group.Go(func() (err error) {
			for n := 0; n < turns && err == nil; n++ {
				err = turn()
			}
			return err
		})
	}
	err := group.Wait()
	slices.Sort(took)
	if len(took) > 0 {
		r.HandOverP50MS, r.HandOverP99MS = ms(took[len(took)/2]), ms(took[len(took)*99/100])
	}
	r.Together = together.Load()
	return err
}

// HoldLock is the process of a holder: it takes the lock, tells its fence on a line, and tells it
// again for each line that it reads, as a writer would send it with each write. It does not check
// before such a "write" whether it still holds the lock: no check can help a process that is paused
// right after it. It never gives the lock back; the lab ends the process.
func HoldLock(ctx context.Context, kind string, addresses []string, life time.Duration, in io.Reader, out io.Writer) error {
	l, err := openLocker(ctx, kind, addresses, life)
	if err != nil {
		return err
	}
	h, err := l.Lock(ctx, "dibs-lab-held", lock.Options{})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	fmt.Fprintln(out, h.Fence())
	for lines.Scan() {
		fmt.Fprintln(out, h.Fence())
	}
	return lines.Err()
}

// holder is a process that has the lock, with the fence that it told first.
type holder struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	fence uint64
}

// hold starts a holder and returns when it has the lock. The caller kills it.
func (c *LocksConfig) hold(kind string, addresses []string) (h *holder, err error) {
	h = &holder{cmd: c.Holder(kind, addresses)}
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = bufio.NewReader(out)
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	if h.fence, err = h.read(); err != nil {
		h.kill()
		return nil, err
	}
	return h, nil
}

// read reads a fence.
func (h *holder) read() (uint64, error) {
	line, err := h.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the holder does not answer: %w", err)
	}
	return strconv.ParseUint(strings.TrimSpace(line), 10, 64)
}

func (h *holder) kill() {
	// It may have ended, and how it ends says nothing.
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// killed kills a holder and measures how long the next one waits for the lock, a minute at most. A
// lock with a lifetime is free when that ends; one that ends with the connection is free at once.
func (c *LocksConfig) killed(ctx context.Context, l lock.Locker, kind string, addresses []string, r *LockResult) error {
	h, err := c.hold(kind, addresses)
	if err != nil {
		return err
	}
	defer h.kill()
	begun := time.Now()
	if err := h.cmd.Process.Kill(); err != nil {
		return err
	}
	next, err := l.Lock(ctx, "dibs-lab-held", lock.Options{Wait: time.Minute})
	if err != nil {
		return err
	}
	// The figure includes taking the lock, which alone measures.
	r.KilledMS = ms(time.Since(begun))
	return next.Unlock(ctx)
}

// paused pauses a holder who is about to write, as a collection of garbage or a virtual machine does,
// and lets it go on when the next one has the lock. When the next one never gets it, PausedMS stays
// nil: such a lock is safe, and stands still with its holder. Otherwise the late write goes through
// unless the store compares fences: Refused says whether the late fence is the lower one.
func (c *LocksConfig) paused(ctx context.Context, l lock.Locker, kind string, addresses []string, r *LockResult) error {
	h, err := c.hold(kind, addresses)
	if err != nil {
		return err
	}
	defer h.kill()
	if err := servers.Pause(h.cmd.Process); err != nil {
		return err
	}
	wait := time.Minute
	if kind == MariaDB || kind == Postgres {
		// It has no lifetime: the lock stays with the connection of the paused process. A wait of
		// some lifetimes is enough to see that.
		wait = 5 * c.Lifetime
	}
	begun := time.Now()
	next, err := l.Lock(ctx, "dibs-lab-held", lock.Options{Wait: wait})
	if errors.Is(err, lock.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	r.PausedMS = new(ms(time.Since(begun)))
	if err := servers.Resume(h.cmd.Process); err != nil {
		return err
	}
	if _, err := io.WriteString(h.in, "write\n"); err != nil {
		return err
	}
	late, err := h.read()
	if err != nil {
		return err
	}
	// The holder wrote after the next one got the lock: only a fence can tell a store.
	r.Stale, r.Refused = true, late < next.Fence()
	return next.Unlock(ctx)
}

// LocksTable writes the results for people.
func LocksTable(w io.Writer, results []LockResult) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "locker\tlock+unlock/s\thand-over p50 ms\tp99 ms\ttwo at once\tholder killed: next after ms\tholder paused: next after ms\tits late write\twith the fence")
	for i := range results {
		r := &results[i]
		paused, late, fenced := "it keeps the lock", "-", "-"
		if r.PausedMS != nil {
			paused, late, fenced = milli(*r.PausedMS), "goes through", "goes through"
			if r.Refused {
				fenced = "refused"
			}
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", r.Locker, rate(r.PerSecond), milli(r.HandOverP50MS), milli(r.HandOverP99MS), r.Together, milli(r.KilledMS), paused, late, fenced)
	}
	return tw.Flush()
}
