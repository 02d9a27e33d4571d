package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/gate"
)

var errNoLottery = dibs.Fail(dibs.NotFound, dibs.Text{EN: "this campaign has no lottery", ZH: "该活动没有抽签"})

// How long others may keep the view of a lottery: while it can change, and once it
// is drawn.
const (
	keepLottery = time.Second
	keepDrawn   = time.Minute
)

// maxLists is how many lists of entries a node sends at the same time: anyone may
// ask, and each list is read from the ledger in full.
const maxLists = 4

var errManyLists = &dibs.Error{
	Reason: dibs.Overloaded, Effect: dibs.EffectNone, RetryAfter: 5 * time.Second,
	Detail: dibs.Text{EN: "too many lists of entries are being read", ZH: "正在读取名单的请求过多"},
}

const typeText = "text/plain; charset=utf-8"

// lotteryHandlers serve lotteries. Without lotteries, no campaign has one.
type lotteryHandlers struct {
	*routes
	campaigns PublicCampaigns
	lotteries gate.Lotteries
	// lists has an element for each list that is being sent.
	lists chan struct{}
}

func (h *lotteryHandlers) campaign(ctx context.Context, id string) (*dibs.Campaign, error) {
	return withGate(ctx, h.campaigns, id, errNoLottery, func(g *dibs.GateSpec) bool {
		return h.lotteries != nil && g.Room != nil && g.Room.Mode == dibs.Lottery
	})
}

func (h *lotteryHandlers) register() {
	const path = "/v1/campaigns/{id}/lottery"
	h.lists = make(chan struct{}, maxLists)
	change(h.routes, operation{
		method: http.MethodPost, path: path + "/entries", id: "register-for-lottery", tag: tagGates, access: userOnly,
		status: http.StatusCreated, knowsRepeats: true,
		summary:     "Register for the draw",
		description: "A repeat returns the registration that there is. Keep `nonce` and `entry`: they prove that you are in the list.",
	}, h.enter)
	register(h.routes, operation{
		method: http.MethodGet, path: path + "/result", id: "my-lottery-result", tag: tagGates, access: userOnly,
		summary: "Show my registration, and whether it has won", description: "From the start on, a winner gets an `admission`; asking again renews it.",
	}, func(ctx context.Context, c *call, in *PathID) (gate.EntryView, error) {
		campaign, err := h.campaign(ctx, in.ID)
		if err != nil {
			return gate.EntryView{}, err
		}
		return h.lotteries.Entry(ctx, campaign, c.caller.user)
	})
	register(h.routes, operation{
		method: http.MethodGet, path: path, id: "get-lottery", tag: tagGates, access: open,
		summary: "Show a lottery",
		description: "What is fixed before registration opens (`seed_hash`), what the closing fixes (`list_hash`), and what the draw reveals " +
			"(`seed`, `cutoff`): with the entries, anyone can draw again.",
	}, h.show)
	change(h.routes, operation{
		method: http.MethodPost, path: path + "/public-value", id: "tell-public-value", tag: tagGates, access: adminOnly,
		summary: "Give a lottery the public value that it waits for", example: `{"value":"3,888.60"}`,
		description: "Once, after the closing. The same value again changes nothing; another one is refused. Then the winners are drawn.",
	}, func(ctx context.Context, _ *call, in *PathID, body *dibs.PublicValueSpec) (gate.LotteryView, error) {
		campaign, err := h.campaign(ctx, in.ID)
		if err != nil {
			return gate.LotteryView{}, err
		}
		return h.lotteries.TellPublicValue(ctx, campaign, body.Value)
	})
	h.plain(operation{
		method: http.MethodGet, path: path + "/entries", id: "lottery-entries", tag: tagGates, access: open,
		summary: "The closed list of a lottery", description: "A hash a line, in ascending order. The SHA-256 of it is `list_hash`.",
	}, typeText, func(_ http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		if err := h.entries(c); err != nil {
			h.fail(c, err)
		}
	})
}

func (h *lotteryHandlers) enter(ctx context.Context, c *call, in *PathID, _ *noBody) (gate.EntryView, error) {
	campaign, err := h.campaign(ctx, in.ID)
	if err != nil {
		return gate.EntryView{}, err
	}
	v, again, err := h.lotteries.Register(ctx, campaign, c.caller.user)
	if err != nil {
		return v, gateProblem(campaign, err, campaign.Gate.Room.RegistrationOpensAt)
	}
	if again {
		c.code = http.StatusOK
		c.replayed()
	}
	return v, nil
}

func (h *lotteryHandlers) show(ctx context.Context, c *call, in *PathID) (gate.LotteryView, error) {
	campaign, err := h.campaign(ctx, in.ID)
	if err != nil {
		return gate.LotteryView{}, err
	}
	v, err := h.lotteries.Lottery(ctx, campaign)
	if err != nil {
		return v, err
	}
	keep := keepLottery
	if v.State == gate.LotteryDrawn {
		keep = keepDrawn
	}
	c.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(keep/time.Second)))
	return v, nil
}

// entries sends the closed list, as text: its hash is that of its bytes. An error is
// one that can still be answered.
func (h *lotteryHandlers) entries(c *call) error {
	ctx := c.request.Context()
	campaign, err := h.campaign(ctx, c.request.PathValue("id"))
	if err != nil {
		return err
	}
	v, err := h.lotteries.Lottery(ctx, campaign)
	if err != nil {
		return err
	}
	begin := func(header http.Header) {
		header.Set("Cache-Control", "public, max-age=3600")
		header.Set("Content-Type", typeText)
		if v.ListHash != "" {
			// A closed list never changes.
			header.Set("ETag", `"`+v.ListHash+`"`)
		}
	}
	if v.ListHash != "" && web.HasTag(c.request.Header, `"`+v.ListHash+`"`) {
		begin(c.Header())
		c.Header().Del("Content-Type")
		c.WriteHeader(http.StatusNotModified)
		return nil
	}
	select {
	case h.lists <- struct{}{}:
		defer func() { <-h.lists }()
	default:
		return errManyLists
	}
	out := &web.DelayedWriter{To: &c.Recorder, Begin: begin}
	if err := h.lotteries.WriteEntries(ctx, campaign, out); err != nil {
		if c.Status == 0 {
			return err
		}
		// A part of a list must not look like the whole of it.
		panic(http.ErrAbortHandler)
	}
	if err := out.Flush(); err != nil {
		h.log.DebugContext(ctx, "an answer was not delivered", "request_id", c.id, "err", err)
	}
	return nil
}
