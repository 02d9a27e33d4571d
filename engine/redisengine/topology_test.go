package redisengine_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/engine/enginetest"
	"github.com/dibs-dev/dibs/engine/redisengine"
	"github.com/dibs-dev/dibs/internal/servers"
)

// everydayChecks are the beginnings of the checks that run on every topology
// each day; with SOAK all of them do. They have what a driver of another kind could get
// wrong: routing, several shards, lists of shards, and load.
var everydayChecks = []string{
	"grants/", "journal/", "reads/a user's", "releases/happen", "closing/opening again under load", "closing/requests cancelled",
	"restarts/limits", "products/", "crowd/the whole", "crowd/one key", "configure/reaches",
}

// setState opens engines on a set of servers that other checks use too.
type setState struct {
	tb      testing.TB
	url     string
	members []*servers.Redis
	cable   *cable
	eng     *redisengine.Engine
	// name is what the engine's connections are called: a check may have another
	// engine on the same set.
	name string
}

// setEngines counts the engines on sets.
var setEngines atomic.Int64

// newSetState empties the set for the next check.
func newSetState(tb testing.TB, url string, members []*servers.Redis) enginetest.State {
	ctx := context.Background()
	for _, m := range members {
		info, err := m.Info(ctx, "replication")
		must(tb, err)
		if info["role"] == "master" {
			_, err := m.Do(ctx, "FLUSHALL")
			must(tb, err)
		}
	}
	return &setState{tb: tb, url: url, members: members}
}

func (s *setState) Open(ctx context.Context) (dibs.Engine, error) {
	s.cable = &cable{}
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	s.name = fmt.Sprintf("dibs-%d-", setEngines.Add(1))
	query := u.Query()
	query.Set("client_name", s.name)
	u.RawQuery = query.Encode()
	eng, err := redisengine.Open(ctx, redisengine.Config{URL: u.String(), Dial: s.cable.dial})
	s.eng = eng
	return eng, err
}

// Kill ends the engine alone: how servers end is what the other tests are about.
func (s *setState) Kill(ctx context.Context) error {
	if n, err := s.connected(ctx); err != nil || n == 0 {
		s.tb.Fatalf("the engine that is to be killed has %d connections called %s: %v", n, s.name, err)
	}
	s.cable.sever()
	if err := s.eng.Close(ctx); err != nil {
		s.tb.Logf("the killed engine closes with: %v", err)
	}
	// Once it is not connected any more, all that it had sent is decided.
	for limit := time.Now().Add(10 * time.Second); ; pause(ctx, time.Millisecond) {
		n, err := s.connected(ctx)
		if err != nil || n == 0 {
			return err
		}
		if time.Now().After(limit) {
			s.tb.Fatalf("the killed engine has %d connections still", n)
		}
	}
}

// connected counts the members that the engine is connected to.
func (s *setState) connected(ctx context.Context) (n int, err error) {
	for _, m := range s.members {
		clients, err := m.Do(ctx, "CLIENT", "LIST", "TYPE", "NORMAL")
		if err != nil {
			return n, err
		}
		list, err := clients.ToString()
		if err != nil {
			return n, err
		}
		if strings.Contains(list, "name="+s.name) {
			n++
		}
	}
	return n, nil
}

// contract runs the suite, or every day's part of it, on a set.
func contract(t *testing.T, url string, members []*servers.Redis) {
	t.Helper()
	f := enginetest.Factory{OwnClock: true, New: func(tb testing.TB, _ func() time.Time) enginetest.State {
		return newSetState(tb, url, members)
	}}
	ran := 0
	for _, c := range enginetest.Checks() {
		everyday := slices.ContainsFunc(everydayChecks, func(prefix string) bool { return strings.HasPrefix(c.Name, prefix) })
		if !everyday && os.Getenv("SOAK") == "" {
			continue
		}
		ran++
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Run(t, f); err != nil {
				t.Error(err)
			}
		})
	}
	if ran < len(everydayChecks) {
		t.Errorf("only %d checks ran", ran)
	}
}

func TestContractThroughSentinel(t *testing.T) {
	t.Parallel()
	s := startSentinel(t)
	contract(t, s.URL(), s.Members)
}

func TestContractOnCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	contract(t, c.URL(), c.Members)
}
