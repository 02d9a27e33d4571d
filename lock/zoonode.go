package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// zooNode is a place in the line for a lock: a node that ends with its session.
type zooNode struct {
	z   *ZooKeeper
	dir string
	// token begins its name, so that it is found when the answer to its making
	// is lost; mode is w or r.
	token, mode string
	// path is the whole name, empty until it is known; session made it.
	path    string
	session int64
	// made is closed when ZooKeeper has answered, or will not.
	made chan struct{}
}

// errPlaceLost: the session has ended, and the place in the line with it.
var errPlaceLost = errors.New("lock: the place in the line is lost")

// stand makes a node at the end of the line.
func (z *ZooKeeper) stand(ctx context.Context, name string, shared bool) (*zooNode, error) {
	n := &zooNode{z: z, dir: z.root + "/" + url.PathEscape("="+name), token: rand.Text(), mode: "w"}
	if shared {
		n.mode = "r"
	}
	for {
		n.session, n.made = z.s.conn.SessionID(), make(chan struct{})
		_, err := ask(ctx, z, n.make)
		if errors.Is(err, zk.ErrNoNode) {
			// ZooKeeper removes the folder of a lock that nobody has used for a while.
			if err = n.folder(ctx); err == nil {
				continue
			}
			return nil, err
		}
		if err != nil {
			// It may have been made, or be made yet.
			return nil, errors.Join(fmt.Errorf("lock: standing in line: %w", err), n.leave())
		}
		return n, nil
	}
}

// make makes the node.
func (n *zooNode) make() (_ struct{}, err error) {
	defer close(n.made)
	n.path, err = n.z.s.conn.Create(n.dir+"/"+n.token+"-"+n.mode+"-", nil, zk.FlagEphemeralSequential, n.z.acl)
	return struct{}{}, err
}

// folder makes the folder of the lock, and those above.
func (n *zooNode) folder(ctx context.Context) error {
	_, err := ask(ctx, n.z, func() (struct{}, error) {
		at := ""
		for part := range strings.SplitSeq(strings.TrimPrefix(n.z.root, "/"), "/") {
			at += "/" + part
			if _, err := n.z.s.conn.Create(at, nil, zk.FlagPersistent, n.z.acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return struct{}{}, err
			}
		}
		_, err := n.z.s.conn.CreateContainer(n.dir, nil, zk.FlagContainer, n.z.acl)
		if errors.Is(err, zk.ErrNodeExists) {
			err = nil
		}
		return struct{}{}, err
	})
	return err
}

// line is what a folder has.
type line struct {
	names []string
	// at is the transaction that changed it last.
	at uint64
}

// wait waits until nobody is before.
func (n *zooNode) wait(ctx context.Context, once bool) (begun time.Time, fence uint64, err error) {
	bad := n.z.trouble()
	for {
		begun = time.Now()
		var now *line
		now, err = ask(ctx, n.z, func() (*line, error) {
			names, stat, err := n.z.s.conn.Children(n.dir)
			if err != nil {
				return nil, err
			}
			return &line{names, uint64(stat.Pzxid)}, nil
		})
		before, there := "", false
		if err == nil {
			before, there = n.before(now.names)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired), err == nil && !there:
			return begun, 0, errPlaceLost
		case err == nil && before == "":
			return begun, now.at, nil
		case err == nil && once:
			return begun, 0, ErrBusy
		case err == nil:
			err = n.watch(ctx, before)
		}
		if ctx.Err() != nil {
			return begun, 0, ctx.Err()
		}
		if err == nil {
			bad.since = time.Time{}
		} else if once || !disconnected(err) || !bad.again(ctx) {
			return begun, 0, fmt.Errorf("lock: waiting in line: %w", err)
		}
	}
}

// disconnected says whether an error is one that another connection may cure.
func disconnected(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved)
}

// trouble is a connection that is lost: it may come back, on another server too.
type trouble struct {
	most  time.Duration
	since time.Time
}

// trouble is bearable for a lifetime, and for as long as the client needs to try
// every server again.
func (z *ZooKeeper) trouble() trouble { return trouble{most: max(z.cfg.Lifetime, leaving)} }

// again waits for a moment, and says whether it is worth another try.
func (t *trouble) again(ctx context.Context) bool {
	if t.since.IsZero() {
		t.since = time.Now()
	}
	if time.Since(t.since) > t.most {
		return false
	}
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// before returns the node that this one waits for: a writer for whoever is just
// before, a reader for the last writer before. there says whether the node
// itself is in the line.
func (n *zooNode) before(names []string) (before string, there bool) {
	_, mine, ok := parseNode(n.path[strings.LastIndex(n.path, "/")+1:])
	nearest := int32(0)
	for _, name := range names {
		mode, number, fits := parseNode(name)
		there = there || strings.HasSuffix(n.path, "/"+name)
		// The number goes round after 2^31.
		if ahead := mine - number; ok && fits && ahead > 0 && (mode == "w" || n.mode == "w") && (nearest == 0 || ahead < nearest) {
			before, nearest = name, ahead
		}
	}
	return before, there
}

// parseNode takes a node's name apart: a token, a mode, a number.
func parseNode(name string) (mode string, number int32, ok bool) {
	parts := strings.SplitN(name, "-", 3)
	if len(parts) != 3 {
		return "", 0, false
	}
	at, err := strconv.ParseInt(parts[2], 10, 32)
	return parts[1], int32(at), err == nil
}

// hold keeps the lock until it is given back.
func (n *zooNode) hold(ctx context.Context, begun time.Time, fence uint64) Held {
	return n.z.open.keep(newHeld(ctx, fence), n.z.life(), begun, n.renew, func(context.Context) error { return n.leave() })
}

// renew asks whether the node is there. The leader has to answer: a server that
// is cut off from the others might not know that the session has ended.
func (n *zooNode) renew(ctx context.Context) (still bool, err error) {
	still, err = ask(ctx, n.z, func() (bool, error) {
		if _, err := n.z.s.conn.Sync(n.path); err != nil {
			return false, err
		}
		there, _, err := n.z.s.conn.Exists(n.path)
		return there, err
	})
	if errors.Is(err, zk.ErrSessionExpired) {
		return false, nil
	}
	return still, err
}

// leave removes the node. It waits for that for a while; when the connection
// is lost it goes on by itself, until it is done or the session is over.
func (n *zooNode) leave() error {
	done := make(chan error, 1)
	away := func() {
		<-n.made
		for again := false; ; again = true {
			err := n.remove(again)
			if !disconnected(err) {
				done <- err
				return
			}
			select {
			case <-time.After(pause):
			case <-n.z.quit:
				done <- err
				return
			}
		}
	}
	if !n.z.calls.start(away) {
		return errClosed
	}
	select {
	case err := <-done:
		return err
	case <-time.After(leaving):
		return errors.New("lock: ZooKeeper does not answer; the lock ends with the session")
	}
}

// remove removes the node once. ErrLost when it was gone.
func (n *zooNode) remove(again bool) error {
	if n.path == "" {
		found, err := n.find()
		if err != nil || found == "" {
			return err
		}
		n.path = found
	}
	err := n.z.s.conn.Delete(n.path, -1)
	switch {
	case errors.Is(err, zk.ErrNoNode) && again && n.z.s.conn.SessionID() == n.session:
		// The earlier try removed it, and its answer was lost.
		return nil
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrSessionExpired):
		return ErrLost
	}
	return err
}

// find looks for a node whose name was lost with the answer.
func (n *zooNode) find() (path string, err error) {
	if _, err := n.z.s.conn.Sync(n.z.root); err != nil {
		return "", err
	}
	names, _, err := n.z.s.conn.Children(n.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return "", err
	}
	for _, name := range names {
		if strings.HasPrefix(name, n.token+"-") {
			return n.dir + "/" + name, nil
		}
	}
	return "", nil
}
