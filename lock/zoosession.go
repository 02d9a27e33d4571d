package lock

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// zooSession is a session with ZooKeeper, which its client renews, moves from
// server to server, and begins anew when it has ended.
// mu guards what stands below it. The client's goroutine dials, so tcp is the
// connection of now.
type zooSession struct {
	conn *zk.Conn
	// gotMS is the lifetime that the servers gave, in milliseconds.
	gotMS atomic.Int64
	// begun is closed with the first session, ended when the client has ended.
	begun, ended chan struct{}
	first        sync.Once

	mu  sync.Mutex
	tcp net.Conn
	// failed are the connections that could not be made; refused is closed when
	// they are as many as there are servers.
	failed  []error
	refused chan struct{}
}

// newZooSession begins to connect. lost is called when a session has ended.
func newZooSession(places []string, life time.Duration, lost func(error)) (*zooSession, error) {
	s := &zooSession{begun: make(chan struct{}), ended: make(chan struct{}), refused: make(chan struct{})}
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		// The client gives no context; close ends what it waits for.
		c, err := (&net.Dialer{Timeout: timeout}).DialContext(context.Background(), network, address)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && len(s.failed) < len(places) {
			if s.failed = append(s.failed, err); len(s.failed) == len(places) {
				close(s.refused)
			}
		}
		if err != nil {
			return nil, err
		}
		if s.tcp != nil {
			// The client forgets one whose session had ended. It may be closed.
			_ = s.tcp.Close()
		}
		s.tcp = &briskConn{c, life}
		return s.tcp, nil
	}
	conn, events, err := zk.Connect(places, life, zk.WithDialer(dial), zk.WithLogger(s), zk.WithLogInfo(true))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	go func() {
		defer close(s.ended)
		for e := range events {
			if e.Type == zk.EventSession && e.State == zk.StateExpired {
				lost(errors.New("lock: the session with ZooKeeper has ended"))
			}
		}
	}()
	return s, nil
}

// briskConn is a connection on which nobody waits for longer than a session
// lives: the client would give a server that hangs ten times as long before it
// tries another one.
type briskConn struct {
	net.Conn
	most time.Duration
}

// SetReadDeadline implements net.Conn.
func (c *briskConn) SetReadDeadline(at time.Time) error {
	if last := time.Now().Add(c.most); at.After(last) {
		at = last
	}
	return c.Conn.SetReadDeadline(at)
}

// Printf implements zk.Logger, and says nothing: it is how the client tells the
// lifetime that a server gave.
func (s *zooSession) Printf(format string, args ...any) {
	if !strings.HasPrefix(format, "authenticated:") || len(args) != 2 {
		return
	}
	if ms, ok := args[1].(int32); ok {
		s.gotMS.Store(int64(ms))
		s.first.Do(func() { close(s.begun) })
	}
}

// await waits for the first session, or until no server can be reached.
func (s *zooSession) await(ctx context.Context) error {
	select {
	case <-s.begun:
		return nil
	case <-s.refused:
		s.mu.Lock()
		defer s.mu.Unlock()
		return errors.Join(s.failed...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *zooSession) granted() time.Duration {
	return time.Duration(s.gotMS.Load()) * time.Millisecond
}

// close ends the session, and with it everything that it holds.
func (s *zooSession) close() {
	s.conn.Close()
	s.mu.Lock()
	if s.tcp != nil {
		// It may be closed, and a server that hangs would keep the client.
		_ = s.tcp.Close()
	}
	s.mu.Unlock()
	<-s.ended
}
