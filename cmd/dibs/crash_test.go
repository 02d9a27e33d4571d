package main

import (
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/internal/servers"
)

// TestDrain stops a server under load: every press that reached it is answered,
// every yes is in the ledger, and nothing else is.
func TestDrain(t *testing.T) {
	granted, kept := drain(t, 500)
	if granted < 500 || kept != granted {
		t.Errorf("%d granted, %d kept", granted, kept)
	}
}

// TestDrainEnds stops servers that have too little time to settle: that is no
// failure, and the next start settles the rest.
func TestDrainEnds(t *testing.T) {
	for _, length := range []string{"0s", "1ms", "5ms", "15ms"} {
		t.Run(length, func(t *testing.T) {
			drain(t, 1500, "--drain", length, "--settle-every", "10s", "--settle-batch", "50000")
		})
	}
}

// drain stops a server by a signal once it has granted a quota under load, and
// counts what was granted, and what the next start finds of it.
func drain(t *testing.T, quota int64, args ...string) (granted, kept int) {
	t.Helper()
	data := t.TempDir()
	p, url := startServe(t, data, args...)
	clitest.Publish(t, clitest.Admin(t, url), "drained", 1_000_000)
	var users atomic.Int64
	l := newLoader(url, &users, quota, "drained")
	wait := l.begin(t.Context(), t)
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	wait()
	_, url = startServe(t, data)
	found := claimsOf(t, clitest.Admin(t, url), "drained")
	for _, p := range l.presses {
		if p.id == "" {
			continue
		}
		granted++
		if found[p.id] != p.user {
			t.Errorf("user %s was granted %s, the ledger has %q", p.user, p.id, found[p.id])
		}
	}
	t.Logf("%d granted and answered, %d presses came too late", granted, len(l.failures))
	return granted, len(found)
}

// rounds is how often the server is killed: DIBS_KILL_ROUNDS, or else SOAK for
// long campaigns, or else 6.
func rounds(t *testing.T) int {
	t.Helper()
	for _, name := range []string{"DIBS_KILL_ROUNDS", "SOAK"} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				t.Fatalf("%s must be a number from 1, not %q", name, text)
			}
			return n
		}
	}
	return 6
}

// killSeed is DIBS_KILL_SEED, or else a new one.
func killSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("DIBS_KILL_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("DIBS_KILL_SEED: %v", err)
	}
	return seed
}

// The campaigns of the crashes: one never sells out, one soon does.
const (
	bigStock   = 1_000_000
	smallStock = 700
	// leastAnswered is how many claims a round must have had granted to count.
	leastAnswered = 50
)

// crashes is a server that is killed again and again.
type crashes struct {
	t *testing.T
	r *rand.Rand
	// ledger is a server's database; empty for files in data.
	data, ledger string
	// more are flags of the server beside those.
	more   []string
	server *process
	url    string
	users  atomic.Int64
	// granted are all claims that were answered with a yes: users by claim id,
	// by campaign.
	granted map[string]map[string]string
	// unanswered counts presses whose fate was unknown, and found those of them
	// that had been granted.
	unanswered, found int
}

// TestKill kills the server under load. Every yes must be found afterwards, a
// repeat of what was not answered must be answered, nothing is sold twice, and
// at the end verify finds nothing.
func TestKill(t *testing.T) { kill(t, "", rounds(t)) }

// TestKillMySQL is TestKill with ledger and journal in a server, which lives on.
func TestKillMySQL(t *testing.T) { killOnServer(t, servers.MariaDB) }

func killOnServer(t *testing.T, get func() (*servers.Server, error)) {
	_, ledger, _ := servers.Database(t, get)
	kill(t, ledger, (rounds(t)+2)/3)
}

// kill kills the server n times under load. Its ledger is in a server, or in
// files when the address is empty.
func kill(t *testing.T, ledger string, n int) {
	seed := killSeed(t)
	t.Logf("seed %d, %d rounds", seed, n)
	c := &crashes{
		t: t, r: rand.New(rand.NewPCG(seed, 0)), data: t.TempDir(), ledger: ledger,
		granted: map[string]map[string]string{"big": {}, "small": {}},
	}
	c.restart()
	clitest.Publish(t, clitest.Admin(t, c.url), "big", bigStock)
	clitest.Publish(t, clitest.Admin(t, c.url), "small", smallStock)
	begun := time.Now()
	for i := range n {
		presses := c.round()
		if t.Failed() {
			t.Fatalf("round %d of seed %d failed", i+1, seed)
		}
		c.check(presses)
		if t.Failed() {
			t.Fatalf("after round %d of seed %d", i+1, seed)
		}
	}
	t.Logf("%d claims granted, %d of %d unanswered presses had been granted, %s a round",
		len(c.granted["big"])+len(c.granted["small"]), c.found, c.unanswered, time.Since(begun)/time.Duration(n))
	if n >= 20 && len(c.granted["small"]) != smallStock {
		t.Errorf("the small campaign granted %d of %d with more demand than stock", len(c.granted["small"]), smallStock)
	}
	c.server.signal(t, syscall.SIGTERM)
	if code := c.server.code(t); code != 0 {
		t.Errorf("exit code %d at the end", code)
	}
	execute(t, nil, append([]string{"verify", "--data", c.data}, c.where()...)...).Want(t, 0, "every promise holds, campaigns verified: 2")
}

// where are the flags that name the ledger.
func (c *crashes) where() []string {
	if c.ledger == "" {
		return nil
	}
	return []string{"--ledger", c.ledger}
}

// restart starts the server, and now and then kills it once more on its way.
func (c *crashes) restart() {
	for c.r.IntN(4) == 0 {
		p := start(c.t, clitest.Secrets, slices.Concat([]string{"serve", "--data", c.data, "--listen", "127.0.0.1:0"}, c.where(), c.more)...)
		after := time.NewTimer(time.Duration(c.r.IntN(400)) * time.Millisecond)
		select {
		case <-after.C:
		case <-p.ended:
			c.t.Fatalf("the server ended by itself:\n%s", p.err)
		}
		p.kill()
	}
	c.server, c.url = startServe(c.t, c.data, append(c.where(), c.more...)...)
}

// round loads the server, kills it at a random moment and starts it again.
func (c *crashes) round() []press {
	quota := leastAnswered + c.r.Int64N(400)
	l := newLoader(c.url, &c.users, quota, "big", "small")
	wait := l.begin(c.t.Context(), c.t)
	c.server.kill()
	wait()
	if n := l.granted.Load(); n < leastAnswered {
		c.t.Fatalf("a round of %d grants does not count", n)
	}
	for _, err := range l.failures {
		if strings.HasPrefix(err.Error(), "asked for") {
			c.t.Error(err)
		}
	}
	c.restart()
	return l.presses
}

// check looks for every press of a round in the server that was started again.
func (c *crashes) check(presses []press) {
	api, transport := clitest.Admin(c.t, c.url), client.NewTransport()
	defer transport.CloseIdleConnections()
	before := map[string]map[string]string{}
	for campaign := range c.granted {
		before[campaign] = claimsOf(c.t, api, campaign)
	}
	for _, p := range presses {
		if p.id != "" {
			c.mustFind(api, p)
		} else if p.refused == "" {
			c.repeat(transport, p, before[p.campaign])
		}
	}
	for campaign, stock := range map[string]int{"big": bigStock, "small": smallStock} {
		c.compare(api, campaign, stock)
	}
}

// mustFind looks for a claim that was answered with a yes.
func (c *crashes) mustFind(api *client.Client, p press) {
	claim, err := api.Orders.Get(c.t.Context(), p.id)
	if err != nil || claim.UserID != p.user || claim.CampaignID != p.campaign {
		c.t.Errorf("claim %s of %s in %s was granted; found %+v, %v", p.id, p.user, p.campaign, claim, err)
	}
	c.granted[p.campaign][p.id] = p.user
}

// repeat sends a press again that got no answer: now there is one, and when it
// had been granted, it is that claim.
func (c *crashes) repeat(transport http.RoundTripper, p press, before map[string]string) {
	c.unanswered++
	if err := p.send(c.t.Context(), c.url, transport); err != nil {
		c.t.Errorf("the repeat of %s in %s got no answer: %v", p.key, p.campaign, err)
		return
	}
	for id, user := range before {
		if user == p.user {
			c.found++
			if p.id != id {
				c.t.Errorf("user %s holds %s, the repeat answered %q%s", user, id, p.id, p.refused)
			}
		}
	}
	if p.id != "" {
		c.granted[p.campaign][p.id] = p.user
	}
}

// compare holds all claims of a campaign against all that were granted.
func (c *crashes) compare(api *client.Client, campaign string, stock int) {
	kept, granted := claimsOf(c.t, api, campaign), c.granted[campaign]
	for id, user := range granted {
		if kept[id] != user {
			c.t.Errorf("%s: claim %s of user %s is lost", campaign, id, user)
		}
	}
	for id, user := range kept {
		if granted[id] != user {
			c.t.Errorf("%s: claim %s of user %s was never asked for", campaign, id, user)
		}
	}
	stats, err := api.Campaigns.Stats(c.t.Context(), campaign)
	if err != nil {
		c.t.Error(err)
	}
	if len(kept) > stock || stats.Granted != int64(len(kept)) || stats.Granted+stats.Remaining != int64(stock) {
		c.t.Errorf("%s: %d claims of a stock of %d, the numbers say %+v", campaign, len(kept), stock, stats)
	}
}
