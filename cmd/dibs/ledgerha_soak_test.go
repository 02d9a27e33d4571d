//go:build soak

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestStandbyBeyondTheJournal promotes a standby that lacks more than the journal
// kept: no record tells what was granted in between. The nodes grant nothing from the
// campaign and say why; another campaign goes on.
func TestStandbyBeyondTheJournal(t *testing.T) {
	t.Parallel()
	pair, c := onPair(t, false)
	clitest.Publish(t, c.admin(0), "sale", 1000)
	clitest.Publish(t, c.admin(0), "other", 10)
	c.granted(0, "other", "early")
	c.settledAll("other")
	var users atomic.Int64
	c.load(&users, 50, map[string]string{})
	c.settledAll("sale")
	noFault(t, pair.CaughtUp())
	noFault(t, pair.Cut())
	c.load(&users, 100, map[string]string{})
	c.settledAll("sale")
	c.redisCLI("XTRIM", "dibs:{1:0}:journal", "MAXLEN", "1")
	pair.Primary.Kill()
	noFault(t, pair.Promote())
	for i, n := range c.nodes {
		late := 0
		eventually(t, clitest.Patience, "the campaign is halted", func(context.Context) bool {
			late++
			_, reason := c.claim(i, "sale", fmt.Sprintf("late%d-%d", i, late))
			return reason == dibs.Unavailable.String()
		})
		n.await(t, n.err, `campaign=sale.*does not (continue|follow)`)
		c.granted(i, "other", fmt.Sprint("late", i))
		health, err := c.admin(i).Health(t.Context())
		if err == nil && health.Ready {
			t.Errorf("node %d is ready: %+v", i, health)
		}
	}
	if r := execute(t, clitest.Secrets, "verify", "--url", c.url); r.Code == cli.ExitOK {
		t.Errorf("verify finds nothing:\n%s", r.Out)
	}
	c.drain()
}

// TestStandbySynchronous kills the primary of a pair whose commits wait for the
// standby, and empties Redis as well. At the level ledgered no yes is lost.
func TestStandbySynchronous(t *testing.T) {
	t.Parallel()
	for range max(1, rounds(t)/30) {
		standbySynchronous(t)
	}
}

func standbySynchronous(t *testing.T) {
	pair, c := onPair(t, true, "--durability", dibs.LevelLedgered)
	clitest.Publish(t, c.admin(0), "sale", bigStock)
	var users atomic.Int64
	all := map[string]string{}
	c.load(&users, 200, all)
	stop := c.pressOn(&users, 200, all)
	pair.Primary.Kill()
	c.redisCLI("FLUSHALL")
	noFault(t, pair.Promote())
	c.await()
	// A node may be ready before it has noticed that Redis is empty.
	for i := range c.nodes {
		eventually(t, clitest.Patience, fmt.Sprintf("node %d grants again", i), func(context.Context) bool {
			user := fmt.Sprint("again", i)
			id, _ := c.claim(i, "sale", user)
			if id != "" {
				all[id] = user
			}
			return id != ""
		})
	}
	c.load(&users, 50, all)
	stop()
	c.settledAll("sale")
	c.keeps(all)
	c.verify()
	c.drain()
}

// TestGaleraDies has the nodes use one server of a Galera cluster at a time, by an
// address that moves: to another server when one is killed, and sometimes before,
// so that two are written to at once. Nothing is lost, nothing is sold twice.
func TestGaleraDies(t *testing.T) {
	t.Parallel()
	seed := killSeed(t)
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	g, err := servers.StartGalera(3)
	noFault(t, err)
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	noFault(t, g.Node(0).Exec("", "CREATE DATABASE d"))
	m := newMoving(t, g.Node(0).Port())
	c := clusterOn(t, fmt.Sprintf("mysql://%s:%s@%s/d", servers.User, servers.Password, m.l.Addr()), 2)
	memory := append([]string{"DIBS_LEDGER=" + g.Node(0).URL("d")}, clitest.Secrets...)
	execute(t, memory, "serve", "--listen", "127.0.0.1:0").Want(t, cli.ExitFailure, "one of a Galera cluster", "--engine redis")
	execute(t, memory, "doctor").Want(t, cli.ExitFailure, "journal", "one of a Galera cluster", "use Redis as the engine")
	clitest.Publish(t, c.admin(0), "sale", bigStock)
	var users atomic.Int64
	all := map[string]string{}
	for round := range max(2, rounds(t)/15) {
		from, to := g.Node(round%3), g.Node((round+1+r.IntN(2))%3)
		stop := c.pressOn(&users, 50, all)
		early := r.IntN(2) == 0
		if early {
			m.to.Store(int64(to.Port()))
			c.cutSome(m, r)
			c.load(&users, 50, all)
		}
		from.Kill()
		m.to.Store(int64(to.Port()))
		c.load(&users, 100, all)
		stop()
		c.settledAll("sale")
		noFault(t, from.Start())
		m.to.Store(int64(g.Node((round + 1) % 3).Port()))
		m.cut(func() bool { return true })
		c.await()
		t.Logf("round %d, moved before the kill: %v, granted so far: %d", round, early, len(all))
	}
	c.keeps(all)
	c.verify()
	c.drain()
}

// cutSome ends about half of the connections, which come back to the new server.
func (c *cluster) cutSome(m *moving, r *rand.Rand) {
	m.cut(func() bool { return r.IntN(2) == 0 })
}

// moving is an address that leads to one server, and can be moved to another: new
// connections go there, those that are open stay.
type moving struct {
	l     net.Listener
	to    atomic.Int64
	mu    sync.Mutex
	links map[net.Conn]net.Conn
	all   sync.WaitGroup
}

func newMoving(t *testing.T, port int) *moving {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	noFault(t, err)
	m := &moving{l: l, links: map[net.Conn]net.Conn{}}
	m.to.Store(int64(port))
	m.all.Go(m.accept)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		m.cut(func() bool { return true })
		m.all.Wait()
	})
	return m
}

func (m *moving) accept() {
	for {
		client, err := m.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		server, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.FormatInt(m.to.Load(), 10)))
		if err != nil {
			// The server is away, and so is the address.
			_ = client.Close()
			continue
		}
		m.mu.Lock()
		m.links[client] = server
		m.mu.Unlock()
		m.all.Go(func() { m.pass(client, server, client) })
		m.all.Go(func() { m.pass(server, client, client) })
	}
}

// pass passes on what one side says until either ends.
func (m *moving) pass(to, from, client net.Conn) {
	// How it ends says nothing.
	_, _ = io.Copy(to, from)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closeLocked(client)
}

// cut ends the connections that chosen chooses.
func (m *moving) cut(chosen func() bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for client := range m.links {
		if chosen() {
			m.closeLocked(client)
		}
	}
}

func (m *moving) closeLocked(client net.Conn) {
	if server, ok := m.links[client]; ok {
		// The other side may be gone already.
		_ = client.Close()
		_ = server.Close()
		delete(m.links, client)
	}
}
