package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// ZooKeeperConfig configures a locker on ZooKeeper, of version 3.5 or later.
type ZooKeeperConfig struct {
	// URL is where ZooKeeper is: zookeeper://host:2181, several servers of an
	// ensemble with commas between; user:password@ before them authenticates by
	// digest, and makes nodes that nobody else may touch; a path is the folder of
	// the locks, else /dibs-locks. Required.
	URL string
	// Lifetime is how long a lock outlives a holder that is not heard of: that of
	// the session. 0 means ten seconds, at least 100 ms. Servers have limits of
	// their own, by default 4 and 40 seconds: what is shorter, others wait longer
	// for; what is longer, the holder counts as the server does.
	Lifetime time.Duration
}

// ZooKeeper gives locks that are ephemeral sequential nodes: the
// lowest number has the lock, and everybody else watches the one before, so
// that one who leaves wakes one. A locker is one session; with it end all its
// locks, and it begins another by itself. The fence is the transaction at which
// the lock was seen to be free, which the whole ensemble counts.
//
// Locks of one session are lost together. quit is closed once, by Close; after it no
// call begins.
type ZooKeeper struct {
	cfg    ZooKeeperConfig
	s      *zooSession
	root   string
	acl    []zk.ACL
	owners owners
	open   openLocks
	// quit is closed by Close; calls are those that have not come back.
	quit    chan struct{}
	calls   calls
	watches watches
	close   sync.Once
}

var _ Locker = (*ZooKeeper)(nil)

// connecting bounds the wait for a first session.
const connecting = 15 * time.Second

// OpenZooKeeper connects, and fails when none of the servers can be reached, or
// gives a session before the context ends, or in 15 seconds.
func OpenZooKeeper(ctx context.Context, cfg ZooKeeperConfig) (*ZooKeeper, error) {
	cfg.Lifetime = cmp.Or(cfg.Lifetime, defaultLifetime)
	if cfg.Lifetime < leastLifetime {
		return nil, fmt.Errorf("lock: ZooKeeperConfig.Lifetime must be %s or more, not %s", leastLifetime, cfg.Lifetime)
	}
	rest, ok := strings.CutPrefix(cfg.URL, "zookeeper://")
	login, places := "", rest
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		login, places = rest[:at], rest[at+1:]
	}
	places, path, _ := strings.Cut(places, "/")
	if !ok || places == "" {
		return nil, errors.New("lock: ZooKeeperConfig.URL is not zookeeper://host:port")
	}
	z := &ZooKeeper{
		cfg: cfg, root: "/" + strings.Trim(path, "/"), acl: zk.WorldACL(zk.PermAll), quit: make(chan struct{}),
		watches: watches{of: make(map[string]*watched)},
	}
	if z.root == "/" {
		z.root = "/dibs-locks"
	}
	var err error
	if z.s, err = newZooSession(strings.Split(places, ","), cfg.Lifetime, z.open.loseAll); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	if err := z.s.await(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("lock: no ZooKeeper gives a session: %w", err), z.Close())
	}
	if login != "" {
		z.acl = zk.AuthACL(zk.PermAll)
		if login, err = url.PathUnescape(login); err == nil {
			_, err = ask(ctx, z, func() (struct{}, error) { return struct{}{}, z.s.conn.AddAuth("digest", []byte(login)) })
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock: ZooKeeper does not know the user: %w", err), z.Close())
		}
	}
	return z, nil
}

// Close implements Locker. Locks that could not be given back end with the session.
func (z *ZooKeeper) Close() (err error) {
	z.close.Do(func() {
		err = z.open.closeAll()
		close(z.quit)
		z.s.close()
		z.calls.end()
	})
	return err
}

// life is how long a session lives without being heard of.
func (z *ZooKeeper) life() time.Duration { return min(z.cfg.Lifetime, z.s.granted()) }

// ask makes a call that knows no context. One that nobody waits for any longer
// ends by itself, at the latest with the connection.
func ask[T any](ctx context.Context, z *ZooKeeper, call func() (T, error)) (T, error) {
	type answer struct {
		is  T
		err error
	}
	got := make(chan answer, 1)
	var none T
	if !z.calls.start(func() {
		is, err := call()
		got <- answer{is, err}
	}) {
		return none, errClosed
	}
	select {
	case a := <-got:
		return a.is, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Lock implements Locker.
func (z *ZooKeeper) Lock(ctx context.Context, name string, o Options) (Held, error) {
	return z.owners.lock(ctx, name, o, z.take)
}

func (z *ZooKeeper) take(ctx context.Context, name string, o Options) (Held, error) {
	bounded, cancel, busy := waiting(ctx, &o)
	defer cancel()
	bad := z.trouble()
	for {
		n, err := z.stand(bounded, name, o.Shared)
		if err != nil && (o.Wait == NoWait || !disconnected(err) || !bad.again(bounded)) {
			return nil, busy(err)
		}
		if err != nil {
			continue
		}
		bad.since = time.Time{}
		begun, fence, err := n.wait(bounded, o.Wait == NoWait)
		if err == nil {
			return n.hold(ctx, begun, fence), nil
		}
		// With a new session goes a new place in the line. A place that cannot be given
		// back now is given back later, or ends with the session.
		if left := n.leave(); !errors.Is(err, errPlaceLost) {
			if left != nil && !errors.Is(left, ErrLost) {
				err = errors.Join(err, left)
			}
			return nil, busy(err)
		}
	}
}
