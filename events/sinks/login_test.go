package sinks

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/dibs-dev/dibs/internal/logins"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestLoginChanges publishes with the password of now when the one of before is refused.
func TestLoginChanges(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) (address string, change func()){"kafka": kafkaWithPassword, "nats": natsWithPassword} {
		t.Run(name, func(t *testing.T) {
			address, change := start(t)
			var book logins.Book
			p, err := open(address, book.Of)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}()
			publish := func(id string) error {
				// As the dispatcher does: a client may try for as long as it is let.
				ctx, cancel := context.WithTimeout(t.Context(), publishPatience)
				defer cancel()
				return p.Publish(ctx, []Message{{ID: id, Type: "dev.dibs.claim.granted", Subject: "1", Body: []byte("{}")}})
			}
			if err := publish("1"); err != nil {
				t.Fatal(err)
			}
			change()
			if err := publish("2"); err == nil || strings.Contains(err.Error(), "pw") {
				t.Errorf("with a password that is gone: %v", err)
			}
			if err := book.Change([]string{address}, []string{strings.Replace(address, "old-pw", "new-pw", 1)}); err != nil {
				t.Fatal(err)
			}
			err = publish("3")
			for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); err = publish("3") {
				<-time.After(50 * time.Millisecond)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func kafkaWithPassword(t *testing.T) (address string, change func()) {
	broker := func(password string, opts ...kfake.Opt) *kfake.Cluster {
		fake, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1), kfake.SeedTopics(1, "shop"), kfake.EnableSASL(), kfake.Superuser("PLAIN", "ann", password))...)
		if err != nil {
			t.Fatal(err)
		}
		return fake
	}
	fake := broker("old-pw")
	at, err := url.Parse("tcp://" + fake.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	return "kafka://ann:old-pw@" + at.Host + "/shop", func() {
		port := portIn(t, at)
		fake.Close()
		next := broker("new-pw", kfake.Ports(port))
		t.Cleanup(next.Close)
	}
}

func natsWithPassword(t *testing.T) (address string, change func()) {
	n, err := servers.StartNATS(t.TempDir(), "ann:old-pw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	return "nats://ann:old-pw@" + n.Addr() + "/shop?stream=SHOP", func() {
		n.Kill()
		n.Login = "ann:new-pw"
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
}

func portIn(t *testing.T, at *url.URL) int {
	t.Helper()
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
