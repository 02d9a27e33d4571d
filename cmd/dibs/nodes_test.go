package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
	"github.com/dibs-dev/dibs/internal/wait"
)

// cluster is some nodes on one Redis and one database, behind a proxy.
type cluster struct {
	t     *testing.T
	redis *servers.Redis
	env   []string
	// ledger is the database's address.
	ledger string
	nodes  []*member
	next   atomic.Uint64
	direct *http.Transport
	// url is the proxy's.
	url string
}

// member is one process of a cluster, which keeps its address when it is started
// again.
type member struct {
	*process
	address string
	// program is another binary than the one under test; empty for that.
	program string
	// warned says that it grants at less than its level, and warns.
	warned bool
}

func (n *member) url() string { return "http://" + n.address }

// newCluster starts nodes on a Redis of their own and an empty database.
func newCluster(t *testing.T, get func() (*servers.Server, error), size int, args ...string) *cluster {
	t.Helper()
	_, ledger, _ := servers.Database(t, get)
	return clusterOn(t, ledger, size, args...)
}

// clusterOn starts nodes on a Redis of their own and an empty ledger.
func clusterOn(t *testing.T, ledger string, size int, args ...string) *cluster {
	t.Helper()
	redis, err := servers.StartRedis(t.TempDir(), servers.RedisAlways...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Kill)
	c := clusterAt(t, redis.URL(), ledger, size, args...)
	c.redis = redis
	return c
}

// clusterAt starts nodes on a Redis that runs and an empty ledger.
func clusterAt(t *testing.T, engine, ledger string, size int, args ...string) *cluster {
	t.Helper()
	return clusterOf(t, "", engine, ledger, size, args...)
}

// clusterOf is clusterAt with nodes of another program; empty for the one under test.
func clusterOf(t *testing.T, program, engine, ledger string, size int, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, ledger: ledger, direct: client.NewTransport()}
	c.env = append([]string{"DIBS_ENGINE=" + engine, "DIBS_LEDGER=" + ledger}, clitest.Secrets...)
	t.Cleanup(c.direct.CloseIdleConnections)
	for range size {
		c.nodes = append(c.nodes, &member{address: "127.0.0.1:0", program: program})
	}
	for _, n := range c.nodes {
		c.start(n, args...)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetXForwarded() },
		Transport: c,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "<html>Bad Gateway</html>", http.StatusBadGateway)
		},
	})
	t.Cleanup(proxy.Close)
	c.url = proxy.URL
	return c
}

// start starts a node, and again after its end.
func (c *cluster) start(n *member, args ...string) {
	c.t.Helper()
	n.process = startProgram(c.t, cmp.Or(n.program, binary), c.env, append([]string{"serve", "--listen", n.address}, args...)...)
	// The proxy reads the address meanwhile, which is the same again after the
	// first time.
	if at := strings.TrimPrefix(n.await(c.t, n.err, `msg=serving url=(\S+)`)[1], "http://"); at != n.address {
		n.address = at
	}
}

// RoundTrip takes the next node, and the one after it when nothing listens
// there, as proxies do: what was sent to a node is not sent to another.
func (c *cluster) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	for range c.nodes {
		n := c.nodes[c.next.Add(1)%uint64(len(c.nodes))]
		r = r.Clone(r.Context())
		r.URL = &url.URL{Scheme: "http", Host: n.address, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
		resp, err = c.direct.RoundTrip(r)
		var op *net.OpError
		if err == nil || !errors.As(err, &op) || op.Op != "dial" {
			return resp, err
		}
	}
	return resp, err
}

// admin is a client of one node.
func (c *cluster) admin(i int) *client.Client { return clitest.Admin(c.t, c.nodes[i].url()) }

// user is a user's client of one node.
func (c *cluster) user(i int, name string) *client.Client {
	c.t.Helper()
	token, err := httpapi.IssueToken([]byte(clitest.Secret), name, time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.admin(i).WithToken(token)
}

// claim claims one unit for a user at a node and returns the claim's id, or the
// reason of the refusal.
func (c *cluster) claim(i int, campaign, user string) (id, reason string) {
	c.t.Helper()
	claim, _, err := c.user(i, user).Claim(c.t.Context(), campaign, 1, "key-"+user)
	var refusal *client.Error
	if errors.As(err, &refusal) {
		return "", refusal.Reason
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return claim.ID, ""
}

// refused fails unless a claim at a node is refused for a reason.
func (c *cluster) refused(i int, campaign, user, want string) {
	c.t.Helper()
	if id, reason := c.claim(i, campaign, user); reason != want {
		c.t.Errorf("node %d answers %s with %q%q, want %s", i, user, id, reason, want)
	}
}

// hears returns once a node no longer refuses for a reason that was true before: it may until Redis
// has told it of a change.
func (c *cluster) hears(i int, campaign, user, before string) {
	c.t.Helper()
	for begun := time.Now(); time.Since(begun) < 10*time.Second && wait.Sleep(c.t.Context(), 5*time.Millisecond); {
		if _, reason := c.claim(i, campaign, user); reason != before {
			return
		}
	}
}

// granted fails unless a claim at a node is granted, and returns its id. A node may refuse
// by what was true until Redis has told it of a change.
func (c *cluster) granted(i int, campaign, user string) string {
	c.t.Helper()
	id, reason := c.claim(i, campaign, user)
	for begun := time.Now(); id == "" && time.Since(begun) < 10*time.Second && wait.Sleep(c.t.Context(), 5*time.Millisecond); {
		id, reason = c.claim(i, campaign, user)
	}
	if id == "" {
		c.t.Errorf("node %d refuses %s: %s", i, user, reason)
	}
	return id
}

// insistFor is how long insist asks: long enough for a failover on a busy machine.
const insistFor = 2 * time.Minute

// insist claims at one node and then the next one, with the same key, until the answer is
// final: the claim's id, or the reason of a refusal that may not be tried again, or that
// says that all is sold. When the time is over, the reason is what the last attempt was
// told.
func (c *cluster) insist(i int, campaign, user, key string, quantity int64) (id, reason string) {
	claim, reason := c.insistOn(i, campaign, user, key, quantity)
	return claim.ID, reason
}

// insistOn is insist that returns the whole claim.
func (c *cluster) insistOn(i int, campaign, user, key string, quantity int64) (claim api.ClaimView, reason string) {
	for over := time.Now().Add(insistFor); ; i++ {
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
		claim, _, err := c.user(i%len(c.nodes), user).Claim(ctx, campaign, quantity, key)
		cancel()
		var refusal *client.Error
		switch {
		case err == nil:
			return claim, ""
		case errors.As(err, &refusal) && refusal.Reason != "" && (refusal.Reason == dibs.SoldOut.String() || !refusal.Retryable):
			return api.ClaimView{}, refusal.Reason
		case time.Now().After(over):
			return api.ClaimView{}, fmt.Sprintf("not within %s: %v", insistFor, err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-c.t.Context().Done():
		}
	}
}

// verify fails unless every promise holds, by the proxy.
func (c *cluster) verify() {
	c.t.Helper()
	execute(c.t, clitest.Secrets, "verify", "--url", c.url).Want(c.t, cli.ExitOK, "every promise holds")
}

// eventually waits until something is so.
func eventually(t *testing.T, limit time.Duration, what string, is func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !is(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// TestNodesAreOne asks one node for what was done at another.
func TestNodesAreOne(t *testing.T) {
	c := newCluster(t, servers.MariaDB, 3)
	clitest.Publish(t, c.admin(0), "sale", 5)
	first := c.granted(1, "sale", "a")
	for i := range c.nodes {
		if claim, err := c.user(i, "a").Orders.Get(t.Context(), first); err != nil || claim.UserID != "a" {
			t.Errorf("node %d does not find the claim: %+v, %v", i, claim, err)
		}
		if again := c.granted(i, "sale", "a"); again != first {
			t.Errorf("node %d answers a repeat with %s, not %s", i, again, first)
		}
	}
	if _, err := c.admin(1).Campaigns.Pause(t.Context(), "sale"); err != nil {
		t.Fatal(err)
	}
	for i := range c.nodes {
		c.refused(i, "sale", "b", "paused")
	}
	if _, err := c.admin(2).Campaigns.Resume(t.Context(), "sale"); err != nil {
		t.Fatal(err)
	}
	for i, user := range []string{"b", "c", "d"} {
		c.granted(i, "sale", user)
	}
	c.granted(0, "sale", "e")
	for i := range c.nodes {
		c.refused(i, "sale", "f", "sold_out")
	}
	c.changeStock(2, "sale", 2)
	c.granted(0, "sale", "f")
	c.changeStock(1, "sale", -1)
	for i := range c.nodes {
		c.refused(i, "sale", "g", "sold_out")
	}
	if _, err := c.admin(0).Campaigns.End(t.Context(), "sale"); err != nil {
		t.Fatal(err)
	}
	for i := range c.nodes {
		if i > 0 {
			c.hears(i, "sale", "g", "sold_out")
		}
		c.refused(i, "sale", "g", "ended")
		health, err := c.admin(i).Health(t.Context())
		if err != nil || !health.Ready || health.Durability != "durable" {
			t.Errorf("node %d is %+v, %v", i, health, err)
		}
	}
	c.verify()
	c.drain()
	// The verb is one more node on the same Redis and the same ledger.
	execute(t, c.env, "verify").Want(t, cli.ExitOK, "every promise holds, campaigns verified: 1")
}

func (c *cluster) changeStock(i int, campaign string, by int64) {
	c.t.Helper()
	if _, err := c.admin(i).Campaigns.ChangeStock(c.t.Context(), campaign, dibs.StockChange{Delta: by}, ""); err != nil {
		c.t.Fatal(err)
	}
}

// drain stops every node, which none may take for a failure.
func (c *cluster) drain() {
	c.t.Helper()
	for i, n := range c.nodes {
		n.signal(c.t, syscall.SIGTERM)
		if code := n.code(c.t); code != cli.ExitOK {
			c.t.Errorf("node %d ends with %d:\n%s", i, code, n.err)
		}
	}
}
