package sinks_test

import (
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/events/sinks"
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
		asCloudEvent(t, e.FieldValues["content-type"], []byte(e.FieldValues["event"]))
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
	await(t, "the sink", func() bool { return s.sinkState(sinks.Name(sink)).Owner != "" })
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
	await(t, "a failure that is told", func() bool { return s.sinkState(sinks.Name(sink)).Failures > 0 })
	if h := s.node.Service.Health(t.Context()); !h.Ready || h.Dependencies["events"].Warning == "" {
		t.Errorf("with a sink that is down, the health is %+v", h)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	ids = append(ids, more...)
	await(t, "what waited", func() bool { return tallied(t, r, "shop", ids).left == 0 })
	await(t, "a sink that is well", func() bool {
		v := s.sinkState(sinks.Name(sink))
		return v.OK && v.Behind == 0 && v.LagMS == 0
	})
}

// TestStalledRedis and TestStalledNATS are for stalls; RabbitMQ is in TestRabbitMQ.
func TestStalledRedis(t *testing.T) {
	t.Parallel()
	stalls(t, redis(t).URL())
}
