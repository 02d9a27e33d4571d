package servers_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dibs-dev/dibs/internal/servers"
)

// TestNATS starts a server that asks for a password, fills a stream, and kills it and starts it again with another
// password: the stream is there.
func TestNATS(t *testing.T) {
	n, err := servers.StartNATS(t.TempDir(), "ann:old")
	must(t, err)
	t.Cleanup(n.Kill)
	if c, err := nats.Connect(n.URL()); err == nil {
		c.Close()
		t.Error("it takes clients without a password")
	}
	connect := func(password string) (*nats.Conn, jetstream.JetStream) {
		c, err := nats.Connect(n.URL(), nats.UserInfo("ann", password))
		must(t, err)
		js, err := jetstream.New(c)
		must(t, err)
		return c, js
	}
	c, js := connect("old")
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop.>"}})
	must(t, err)
	_, err = js.Publish(t.Context(), "shop.x", []byte("x"))
	must(t, err)
	c.Close()
	n.Kill()
	n.Login = "ann:new"
	must(t, n.Start())
	c, js = connect("new")
	defer c.Close()
	s, err := js.Stream(t.Context(), "SHOP")
	must(t, err)
	if has := s.CachedInfo().State.Msgs; has != 1 {
		t.Errorf("the stream has %d messages", has)
	}
}
