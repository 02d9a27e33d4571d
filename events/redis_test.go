package events_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/events"
	"github.com/dibs-dev/dibs/internal/servers"
)

// redis starts a server of the test's own.
func redis(t testing.TB) *servers.Redis {
	t.Helper()
	r, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return r
}

// stream reads all of a stream: id, event, id, event and so on.
func stream(t testing.TB, r *servers.Redis, name string) (list [][2]string) {
	t.Helper()
	m, err := r.Do(t.Context(), "XRANGE", name, "-", "+")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := m.AsXRange()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, [2]string{e.FieldValues["id"], e.FieldValues["event"]})
	}
	return list
}

// tallied reports whether a stream has all that is wanted.
func tallied(t testing.TB, r *servers.Redis, name string, ids []string) *tally {
	w := newTally(t, ids)
	for _, m := range stream(t, r, name) {
		w.take(m[0], m[1])
	}
	return w
}

// TestRedisStream: a stream gets every event once, in order, and after the
// server was gone for a while nothing is missing.
func TestRedisStream(t *testing.T) {
	t.Parallel()
	r := redis(t)
	sink := r.URL() + "/0?stream=shop&maxlen=100000"
	s := openShop(t, folder(t), sink)
	await(t, "the sink", func() bool { return s.sinkState(events.Name(sink)).Owner != "" })
	ids := s.buy("a", 30)
	await(t, "all events", func() bool { return tallied(t, r, "shop", ids).left == 0 })
	w := tallied(t, r, "shop", ids)
	if w.twice != 0 {
		t.Errorf("%d events came twice, and nothing had failed", w.twice)
	}
	e := w.events[ids[0]+".1"]
	if data := string(e.Data); !strings.Contains(data, `"status":"confirmed"`) || !strings.Contains(data, `"ref":"pay-`+ids[0]) || !strings.Contains(data, `"n":1`) {
		t.Errorf("the data of a payment are %s", data)
	}
	r.Kill()
	more := s.buy("b", 20)
	await(t, "a failure that is told", func() bool { return s.sinkState(events.Name(sink)).Failures > 0 })
	if h := s.node.Service.Health(t.Context()); !h.Ready || h.Dependencies["events"].Warning == "" {
		t.Errorf("with a sink that is down, the health is %+v", h)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	ids = append(ids, more...)
	await(t, "what waited", func() bool { return tallied(t, r, "shop", ids).left == 0 })
	await(t, "a sink that is well", func() bool {
		v := s.sinkState(events.Name(sink))
		return v.OK && v.Behind == 0 && v.LagMS == 0
	})
}

// The environment of the process that dies.
const (
	dyingDir  = "EVENTS_TEST_DIR"
	dyingSink = "EVENTS_TEST_SINK"
)

// mortal is a source that kills its process when some events have been
// published and the place is to be moved behind them.
type mortal struct {
	events.Source
	after int
}

func (m *mortal) TakeNews(ctx context.Context, t dibs.Taking) error {
	if m.after -= t.Events; m.after <= 0 {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		return errors.Join(err, errors.New("the process should be dead"))
	}
	return m.Source.TakeNews(ctx, t)
}

// die runs a node that is killed between publishing and noting it.
func die(dir, sink string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	node, err := openNode(ctx, dir, events.Config{})
	if err != nil {
		return err
	}
	d, err := events.Start(events.Config{Source: &mortal{node.Service, 20}, Sinks: []string{sink}, Poll: time.Millisecond, Lease: time.Second})
	if err != nil {
		return err
	}
	defer d.Close()
	fmt.Println("begun")
	for round := 0; ; round++ {
		if _, err := buy(ctx, node, fmt.Sprintf("dying-%d-%d", os.Getpid(), round), 10); err != nil {
			return err
		}
	}
}

// TestKilledBetweenPublishAndCommit: a node that is killed after an event was
// published and before that was noted publishes it again, the same, and loses
// none.
func TestKilledBetweenPublishAndCommit(t *testing.T) {
	t.Parallel()
	r := redis(t)
	dir, sink := folder(t), r.URL()+"?stream=shop"
	openShop(t, dir, sink).close()
	for range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), dyingDir+"="+dir, dyingSink+"="+sink)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if lines.Text() != "begun" {
				t.Errorf("the process says %s", lines.Text())
			}
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("the process ended with %v, and should have been killed", err)
		}
	}
	s := openShop(t, dir, sink)
	ids := s.buy("after", 10)
	await(t, "the last events", func() bool { return tallied(t, r, "shop", ids).left == 0 })
	s.check(r, "shop")
}

// check holds a stream against the ledger: each step of each claim is there,
// in order, and what is there twice is the same.
func (s *shop) check(r *servers.Redis, name string) {
	s.t.Helper()
	first, twice := map[string]string{}, 0
	next := map[string]int{}
	for _, m := range stream(s.t, r, name) {
		if before, again := first[m[0]]; again {
			if twice++; before != m[1] {
				s.t.Errorf("the event %s came again and was another:\n%s\n%s", m[0], before, m[1])
			}
			continue
		}
		first[m[0]] = m[1]
		claim, n, _ := strings.Cut(m[0], ".")
		if len(claim) == 16 {
			if n != string(rune('0'+next[claim])) {
				s.t.Errorf("the event %s came when %d had come", m[0], next[claim])
			}
			next[claim]++
		}
	}
	if twice == 0 {
		s.t.Error("no event came twice: nobody was killed at the right moment")
	}
	for page := (dibs.Page{Limit: dibs.MaxPage}); ; {
		list, err := s.node.Service.CampaignClaims(s.t.Context(), "noon", dibs.ClaimFilter{}, page)
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range list.Items {
			c := &list.Items[i]
			if got, want := next[c.ID], len(c.Events)+1; got != want {
				s.t.Errorf("of the %d events of the claim %s, %d came", want, c.ID, got)
			}
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			return
		}
	}
}
