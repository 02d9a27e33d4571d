package sinks_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dibs-dev/dibs/events/sinks"
)

// TestKafka: a topic of several partitions gets every event, in order for each
// claim. The broker is franz-go's own fake of Kafka's protocol.
func TestKafka(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "shop"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	address := fake.ListenAddrs()[0]
	sink := "kafka://" + address + "/shop"
	s := openShop(t, folder(t), sink)
	await(t, "the sink", func() bool { return s.sinkState(sinks.Name(sink)).Owner != "" })
	ids := s.buy("a", 30)
	c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics("shop"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, partitions := newTally(t, ids), map[int32]bool{}
	for w.left > 0 {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d events are missing: %v", w.left, err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			partitions[r.Partition] = true
			headers := map[string]string{}
			for _, h := range r.Headers {
				headers[h.Key] = string(h.Value)
			}
			id := headers["id"]
			asCloudEvent(t, headers["content-type"], r.Value)
			w.take(id, string(r.Value))
			if got := w.events[id].Subject; got != "" && got != string(r.Key) {
				t.Errorf("the key of %s is %s", id, r.Key)
			}
		})
	}
	if w.twice > 0 || len(partitions) < 2 {
		t.Errorf("%d events came twice, by %d partitions", w.twice, len(partitions))
	}
	s.close()
}

// swallow gives no answer to a request.
func swallow[Request, Response any](Request) (answer Response, err error, handled bool) {
	return answer, nil, kafkaStalls.Load()
}

// TestStalledKafka is like stalls, for a broker that takes what is sent and does
// not answer. The broker is franz-go's own fake.
func TestStalledKafka(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "shop"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	const produce = 0
	for range 10 {
		fake.ControlKey(produce, swallow)
	}
	p, err := sinks.Open("kafka://" + fake.ListenAddrs()[0] + "/shop")
	if err != nil {
		t.Fatal(err)
	}
	publish := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return p.Publish(ctx, []sinks.Message{{ID: "x.0", Type: "dev.dibs.claim.granted", Subject: "x", Body: []byte("{}")}})
	}
	if err := publish(patience); err != nil {
		t.Fatal(err)
	}
	kafkaStalls.Store(true)
	begun := time.Now()
	if err := publish(200 * time.Millisecond); err == nil {
		t.Error("a broker that does not answer has acknowledged")
	}
	// The library's own limits are 20 seconds.
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("publishing took %s", took)
	}
	kafkaStalls.Store(false)
	if err := publish(patience); err != nil {
		t.Errorf("publishing again: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
