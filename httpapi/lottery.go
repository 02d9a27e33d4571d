package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
)

func (a *api) lotteryOf(ctx context.Context, id string) (*dibs.Campaign, error) {
	return a.campaignFor(ctx, id, errNoLottery, func(g *dibs.GateSpec) bool {
		return a.cfg.Lotteries != nil && g.Room != nil && g.Room.Mode == dibs.Lottery
	})
}

// lotteryCache is how long a lottery's view may be kept while it can change, and
// drawnCache afterwards.
const (
	lotteryCache = time.Second
	drawnCache   = time.Minute
)

func (a *api) registerLottery() {
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/lottery/entries", id: "register-for-lottery", tag: tagQueue, access: userOnly,
		status: http.StatusCreated, maxBody: a.cfg.MaxBody, knowsRepeats: true,
		summary:     "Register for the draw",
		description: "Again, it returns the registration that there is. Keep `nonce` and `entry`: they prove that you are in the list.",
	}, func(ctx context.Context, c *call, in *PathID, _ *noBody) (dibs.EntryView, error) {
		campaign, err := a.lotteryOf(ctx, in.ID)
		if err != nil {
			return dibs.EntryView{}, err
		}
		v, again, err := a.cfg.Lotteries.Register(ctx, campaign, c.who.user)
		if err != nil {
			return v, gateProblem(campaign, err, campaign.Gate.Room.RegistrationOpensAt)
		}
		if again {
			c.code = http.StatusOK
			c.Header()[headerReplayed] = isTrue
		}
		return v, nil
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/lottery/result", id: "my-lottery-result", tag: tagQueue, access: userOnly,
		summary: "Show my registration, and whether it has won", description: "From the start on, a winner gets an `admission`; asking again renews it.",
	}, func(ctx context.Context, c *call, in *PathID) (dibs.EntryView, error) {
		campaign, err := a.lotteryOf(ctx, in.ID)
		if err != nil {
			return dibs.EntryView{}, err
		}
		return a.cfg.Lotteries.Entry(ctx, campaign, c.who.user)
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/lottery", id: "get-lottery", tag: tagQueue, access: open,
		summary: "Show a lottery",
		description: "What is fixed before registration opens (`seed_hash`), what the closing fixes (`list_hash`), and what the draw reveals " +
			"(`seed`, `cutoff`): with the entries, anybody can draw again.",
	}, func(ctx context.Context, c *call, in *PathID) (dibs.LotteryView, error) {
		campaign, err := a.lotteryOf(ctx, in.ID)
		if err != nil {
			return dibs.LotteryView{}, err
		}
		v, err := a.cfg.Lotteries.Lottery(ctx, campaign)
		if err == nil {
			keepLottery(c, &v)
		}
		return v, err
	})
	change(a, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/lottery/public-value", id: "tell-public-value", tag: tagQueue, access: adminOnly,
		summary: "Tell the public value that a lottery waits for", maxBody: a.cfg.MaxBody, example: `{"value":"3,888.60"}`,
		description: "Once, after the closing. The same value again changes nothing; another one is refused. Then the winners are drawn.",
	}, func(ctx context.Context, _ *call, in *PathID, body *dibs.PublicValueSpec) (dibs.LotteryView, error) {
		campaign, err := a.lotteryOf(ctx, in.ID)
		if err != nil {
			return dibs.LotteryView{}, err
		}
		return a.cfg.Lotteries.TellPublicValue(ctx, campaign, body.Value)
	})
	a.registerEntries()
}

// keepLottery says how long a lottery's view may be kept.
func keepLottery(c *call, v *dibs.LotteryView) {
	keep := lotteryCache
	if v.State == dibs.LotteryDrawn {
		keep = drawnCache
	}
	c.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(keep/time.Second)))
}

// registerEntries adds the closed list, which is a text: its hash is that of its
// bytes.
func (a *api) registerEntries() {
	a.plain(operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/lottery/entries", id: "lottery-entries", tag: tagQueue, access: open,
		summary: "The closed list of a lottery", description: "A hash a line, in ascending order. The SHA-256 of it is `list_hash`.",
	}, "text/plain; charset=utf-8", nil)
	lists := make(chan struct{}, listsAtOnce)
	a.routes.HandleFunc("GET /v1/campaigns/{id}/lottery/entries", func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		campaign, err := a.lotteryOf(r.Context(), r.PathValue("id"))
		if err != nil {
			a.fail(c, err)
			return
		}
		v, err := a.cfg.Lotteries.Lottery(r.Context(), campaign)
		if err != nil {
			a.fail(c, err)
			return
		}
		tag := ""
		if v.ListHash != "" {
			// A closed list never changes.
			tag = `"` + v.ListHash + `"`
		}
		if tag != "" && hasTag(r.Header, tag) {
			keepEntries(w.Header(), tag)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		select {
		case lists <- struct{}{}:
			defer func() { <-lists }()
		default:
			a.fail(c, manyLists)
			return
		}
		out := &lateStart{c: c, tag: tag}
		if err := a.cfg.Lotteries.WriteEntries(r.Context(), campaign, out); err != nil {
			if c.status == 0 {
				a.fail(c, err)
				return
			}
			// Half of a list must not look like the whole of it.
			panic(http.ErrAbortHandler)
		}
		out.flush()
	})
}

// listsAtOnce is how many lists of entries a node sends at the same time: anybody
// may ask, and each reads all of its entries from the ledger.
const listsAtOnce = 4

var manyLists = &dibs.Error{
	Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: 5 * time.Second,
	Detail: dibs.Text{EN: "many read lists of entries now", ZH: "正在读取名单的请求过多"},
}

// keepEntries says that a list may be kept, and by which tag it is known.
func keepEntries(h http.Header, tag string) {
	h.Set("Cache-Control", "public, max-age=3600")
	if tag != "" {
		h.Set("ETag", tag)
	}
}

// listWrite bounds how long the sending of a part of the list may take.
const listWrite = time.Minute

// lateStart sends headers with the first bytes, so that an error before them is
// answered as one.
type lateStart struct {
	c   *call
	tag string
	buf bytes.Buffer
}

// Write collects small writes.
func (l *lateStart) Write(b []byte) (int, error) {
	l.buf.Write(b)
	if l.buf.Len() < 64<<10 {
		return len(b), nil
	}
	return len(b), l.send()
}

func (l *lateStart) send() error {
	if l.c.status == 0 {
		h := l.c.Header()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		keepEntries(h, l.tag)
	}
	// Where there is no deadline to be moved, there is none to be missed.
	_ = http.NewResponseController(l.c).SetWriteDeadline(time.Now().Add(listWrite))
	_, err := l.c.Write(l.buf.Bytes())
	l.buf.Reset()
	return err
}

// flush sends the rest; a client that is gone needs none.
func (l *lateStart) flush() { _ = l.send() }
