package node_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/campaigns"
	"github.com/dibs-dev/dibs/internal/servers"
)

// divided starts two servers with campaigns on both, in which ann has a claim each, and
// closes the node.
func divided(t *testing.T) (*several, map[int][]string) {
	t.Helper()
	s := newSeveral(t, 2)
	s.open(0, 1)
	on := s.publish("c", 8)
	if len(on[1]) < 2 || len(on[2]) == 0 {
		t.Fatalf("the campaigns are on %v", on)
	}
	for _, all := range on {
		for _, c := range all {
			s.granted(c, "ann")
		}
	}
	s.whole()
	s.close()
	return s, on
}

// unavailable reports whether a claim is refused as unavailable.
func (s *several) unavailable(campaign, user string) bool {
	_, err := s.claim(campaign, user)
	return errors.Is(err, dibs.ErrUnavailable)
}

// warning is what the node says of its engine while it is ready.
func (s *several) warning() string {
	s.Helper()
	h := s.node.Health(s.Context())
	if !h.Ready {
		s.Errorf("the node is not ready: %+v", h.Dependencies)
	}
	return h.Dependencies["engine"].Warning
}

// do sends a command to one of the servers.
func (s *several) do(server int, args ...string) {
	s.Helper()
	if _, err := s.redis[server].Do(s.Context(), args...); err != nil {
		s.Fatal(err)
	}
}

// TestStartWithoutADeployment starts a node while one of two servers is down, be it the first
// one, where what is of no campaign is, or the second. What is on the other one is sold, a
// shard of the lost one can be given up, and the server that comes back sells the rest.
func TestStartWithoutADeployment(t *testing.T) {
	for lost := range 2 {
		t.Run(fmt.Sprint("deployment ", lost+1), func(t *testing.T) {
			s, on := divided(t)
			gone, there := on[lost+1], on[2-lost]
			s.redis[lost].Kill()
			s.open(0, 1)
			s.granted(there[0], "bob")
			if !s.unavailable(gone[0], "bob") {
				t.Error("a claim of the deployment that is down is not refused as unavailable")
			}
			if want := fmt.Sprintf("deployment %d of the engine cannot decide claims", lost+1); !strings.Contains(s.warning(), want) {
				t.Errorf("the engine's warning is %q, want %q", s.warning(), want)
			}
			if up := s.node.Health(t.Context()).Deployments; len(up) != 2 || up[lost+1] || !up[2-lost] {
				t.Errorf("the deployments are %v", up)
			}
			later := s.publish("later", 3)
			if len(later[2-lost]) != 3 {
				t.Errorf("new campaigns are on %v", later)
			}
			s.granted(later[2-lost][0], "ann")

			given := gone[len(gone)-1]
			if _, err := s.node.Campaigns.AbandonShard(t.Context(), given, 0, campaigns.Abandonment{Unsold: new(int64(19))}); err != nil {
				t.Fatal(err)
			}
			s.until("the other deployment sells what was given up", func() bool {
				r, err := s.claim(given, "bob")
				return err == nil && r.Outcome == dibs.Granted
			})

			if err := s.redis[lost].Start(); err != nil {
				t.Fatal(err)
			}
			s.until("its campaigns sell, without a restart", func() bool {
				r, err := s.claim(gone[0], "bob")
				return err == nil && r.Outcome == dibs.Granted
			})
			if r, err := s.claim(gone[0], "ann"); err != nil || !r.Replayed {
				t.Errorf("a yes from before: %+v, %v", r, err)
			}
			if number := s.deploymentOf(given); number != 2-lost {
				t.Errorf("what was given up is on deployment %d", number)
			}
			s.until("nothing warns", func() bool { return s.node.Health(t.Context()).Dependencies["engine"].Warning == "" })
			s.whole()
		})
	}
}

// TestStartWithoutAFrozenDeployment starts a node while a server takes connections and
// answers none.
func TestStartWithoutAFrozenDeployment(t *testing.T) {
	s, on := divided(t)
	if err := s.redis[1].Freeze(); err != nil {
		t.Fatal(err)
	}
	s.open(0, 1)
	s.granted(on[1][0], "bob")
	if !s.unavailable(on[2][0], "bob") {
		t.Error("a claim of the deployment that is frozen is not refused as unavailable")
	}
	if err := s.redis[1].Thaw(); err != nil {
		t.Fatal(err)
	}
	s.until("its campaigns sell, without a restart", func() bool {
		r, err := s.claim(on[2][0], "bob")
		return err == nil && r.Outcome == dibs.Granted
	})
	s.whole()
}

// TestStartWithoutAny: no deployment answers, or one that does cannot be used, or one is
// missing that nobody has seen. Then waiting helps nobody, and the start says why it fails.
func TestStartWithoutAny(t *testing.T) {
	s, _ := divided(t)
	one, two := s.redis[0].URL(), s.redis[1].URL()
	fails := func(what string, addresses []string, want ...string) {
		t.Helper()
		err := s.tryOpen(addresses...)
		for _, text := range want {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", what, err, text)
			}
		}
		s.close()
	}
	both := []string{one, two}
	s.do(0, "CONFIG", "SET", "appendfsync", "everysec")
	fails("a level that is not given", both, "the deployment at "+one, "appendfsync")
	s.do(0, "CONFIG", "SET", "appendfsync", "always")
	s.do(0, "ACL", "SETUSER", "ann", "on", ">right", "~*", "&*", "+@all")
	fails("a wrong password", []string{strings.Replace(one, "://", "://ann:wrong@", 1), two}, "the deployment at "+one, "WRONGPASS")

	s.redis[1].Kill()
	s.do(0, "CONFIG", "SET", "appendfsync", "everysec")
	fails("one that is unfit, and one that is down", both, "appendfsync")
	s.do(0, "CONFIG", "SET", "appendfsync", "always")
	s.refused("an address that nobody knows", "the ledger knows no deployment there", one, two, "redis://127.0.0.1:1")
	s.refused("an address that nobody knows in the place of one with campaigns", "is missing", one, "redis://127.0.0.1:1")
	s.redis[0].Kill()
	fails("none", both, "the deployment at "+one, "the deployment at "+two)
	if err := s.redis[0].Start(); err != nil {
		t.Fatal(err)
	}
	s.open(0, 1)
}

// TestWhatComesBackIsAnother: at the address of a deployment that was down another Redis
// answers. The node says so and does not use it; once the right one is there, it does.
func TestWhatComesBackIsAnother(t *testing.T) {
	s, on := divided(t)
	dead, identity := on[1][0], s.identity(0)
	s.do(0, "SET", "dibs:deployment", "a stranger")
	s.redis[0].Kill()
	s.open(0, 1)
	refused := func(what, why string) {
		t.Helper()
		s.until(what+" is not used, and the node says so", func() bool {
			err := s.node.Engine.Abilities().Deployments(t.Context())[1]
			return err != nil && strings.Contains(err.Error(), why) && strings.Contains(s.warning(), "what answers as 1 cannot be used")
		})
		if !s.unavailable(dead, "bob") {
			t.Errorf("%s: a claim is not refused as unavailable", what)
		}
		if _, err := s.node.Campaigns.AbandonShard(t.Context(), dead, 0, campaigns.Abandonment{Yes: true}); !errors.Is(err, dibs.ErrInvalidState) {
			t.Errorf("%s: a shard is given up while its deployment may be there: %v", what, err)
		}
	}
	end := forward(t, s.redis[0].Addr(), s.redis[1].Addr())
	refused("the other deployment's server", "what answers there is deployment 2")
	end()
	if err := s.redis[0].Start(); err != nil {
		t.Fatal(err)
	}
	refused("one with another identity", "an identity that the ledger does not know")
	s.do(0, "SET", "dibs:deployment", identity)
	s.until("the right one sells", func() bool {
		r, err := s.claim(dead, "bob")
		return err == nil && r.Outcome == dibs.Granted
	})
	s.whole()
}

// forward has what comes to one address go to another, until the returned function is
// called, which ends the connections.
func forward(t *testing.T, from, to string) (end func()) {
	t.Helper()
	at, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			conn, err := at.Accept()
			if err != nil {
				for _, c := range open {
					_ = c.Close()
				}
				return
			}
			open = append(open, conn)
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = conn.Close()
				continue
			}
			for in, out := range map[net.Conn]net.Conn{conn: server, server: conn} {
				go func() {
					// Either end may close first.
					_, _ = io.Copy(out, in)
					_, _ = out.Close(), in.Close()
				}()
			}
		}
	}()
	return func() {
		if err := at.Close(); err != nil {
			t.Error(err)
		}
		<-done
	}
}

// TestAnEmptiedDeploymentComesLate: a server that was down at the start comes back with
// nothing. It is the same deployment, and its campaigns are loaded from the ledger.
func TestAnEmptiedDeploymentComesLate(t *testing.T) {
	s, on := divided(t)
	s.do(0, "FLUSHALL")
	s.redis[0].Kill()
	s.open(0, 1)
	if err := s.redis[0].Start(); err != nil {
		t.Fatal(err)
	}
	s.until("its campaigns sell", func() bool {
		r, err := s.claim(on[1][0], "bob")
		return err == nil && r.Outcome == dibs.Granted
	})
	if r, err := s.claim(on[1][0], "ann"); err != nil || !r.Replayed {
		t.Errorf("a yes from before: %+v, %v", r, err)
	}
	s.whole()
	s.close()
	s.open(1, 0)
	if number := s.deploymentOf(on[1][0]); number != 1 {
		t.Errorf("its campaign is on deployment %d", number)
	}
}

// identity is what a server says which deployment it is.
func (s *several) identity(server int) string {
	s.Helper()
	has, err := s.redis[server].Do(s.Context(), "GET", "dibs:deployment")
	if err != nil {
		s.Fatal(err)
	}
	identity, err := has.ToString()
	if err != nil {
		s.Fatal(err)
	}
	return identity
}

// TestAnotherAnswersForOneInUse: while the node runs, another Redis answers at the address of
// a deployment. Nothing is sold there and nothing loaded into it, however short the moment
// was in which nothing answered; the deployment itself, back again, sells on.
func TestAnotherAnswersForOneInUse(t *testing.T) {
	s, on := divided(t)
	dead, identity := on[1][0], s.identity(0)
	s.open(0, 1)
	s.granted(dead, "bob")
	s.addRedis()
	s.do(2, "SET", "dibs:ledger", "another ledger's")
	refused := func(what, why string) {
		t.Helper()
		s.until(what+" is not used, and the node says so", func() bool {
			// Not ready it is for a moment: the ledger has seen the shard's server alive.
			warning := s.node.Health(t.Context()).Dependencies["engine"].Warning
			if r, err := s.claim(dead, "cem"); err == nil {
				t.Fatalf("%s: a claim is %s", what, r.Outcome)
			}
			err := s.node.Engine.Abilities().Deployments(t.Context())[1]
			return err != nil && strings.Contains(err.Error(), why) && strings.Contains(warning, "what answers as 1 cannot be used")
		})
		s.granted(on[2][0], "user-of-"+what)
	}
	s.redis[0].Kill()
	for server, why := range map[int]string{1: "what answers there is deployment 2", 2: "belongs to another ledger"} {
		end := forward(t, s.redis[0].Addr(), s.redis[server].Addr())
		refused(fmt.Sprint("server-", server), why)
		end()
	}
	if got := s.identity(1); got == identity {
		t.Error("the other deployment has the identity of the one that it answered for")
	}
	if err := s.redis[0].Start(); err != nil {
		t.Fatal(err)
	}
	s.until("the right one sells", func() bool {
		r, err := s.claim(dead, "cem")
		return err == nil && r.Outcome == dibs.Granted
	})
	s.whole()
}

// TestWeakerSettingsOfOneInUse: a deployment comes back with settings with which it would not
// have been used at the start. No claim is decided on it before they are right again.
func TestWeakerSettingsOfOneInUse(t *testing.T) {
	for _, weak := range [][]string{{"appendfsync", "everysec", "always"}, {"maxmemory-policy", "allkeys-lru", "noeviction"}} {
		t.Run(weak[0], func(t *testing.T) {
			s, on := divided(t)
			dead := on[1][0]
			other, err := servers.StartRedis(t.TempDir(), append(slices.Clone(servers.RedisAlways), "--"+weak[0], weak[1])...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(other.Kill)
			if _, err := other.Do(t.Context(), "SET", "dibs:deployment", s.identity(0)); err != nil {
				t.Fatal(err)
			}
			s.open(0, 1)
			s.granted(dead, "bob")
			s.redis[0].Kill()
			defer forward(t, s.redis[0].Addr(), other.Addr())()
			c, err := s.node.Campaigns.Get(t.Context(), dead)
			if err != nil {
				t.Fatal(err)
			}
			s.until("claims are refused for the setting, although the campaign is loaded", func() bool {
				_, notOpen := s.node.Engine.Stats(t.Context(), dibs.ShardID{Campaign: c.Number})
				if r, err := s.claim(dead, "cem"); err == nil {
					t.Fatalf("a claim is %s", r.Outcome)
				}
				return notOpen == nil && strings.Contains(s.node.Health(t.Context()).Dependencies["engine"].Warning, weak[0])
			})
			if _, err := other.Do(t.Context(), "CONFIG", "SET", weak[0], weak[2]); err != nil {
				t.Fatal(err)
			}
			s.until("its campaigns sell", func() bool {
				r, err := s.claim(dead, "cem")
				return err == nil && r.Outcome == dibs.Granted
			})
			s.whole()
			s.close()
		})
	}
}
