package httpapi

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/httpapi/internal/lists"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/gate"
)

// How long others may keep the view of a lottery: while it can change, and once it
// is drawn.
// Many people look at a lottery at the moment of the draw: a second takes nearly all
// of them off the ledger.
const (
	keepLottery = time.Second
	keepDrawn   = time.Minute
)

// keepList is how long others may keep a closed list.
// A closed list never changes, so a proxy may answer for it.
const keepList = "public, max-age=3600"

const typeText = "text/plain; charset=utf-8"

// lotteryHandlers serve lotteries. Without lotteries, no campaign has one.
// lists bounds how many send a list at once, for each address too.
type lotteryHandlers struct {
	*routes
	campaigns PublicCampaigns
	lotteries gate.Lotteries
	lists     *lists.Lists
}

func (h *lotteryHandlers) campaign(ctx context.Context, id string) (*dibs.Campaign, error) {
	return withGate(ctx, h.campaigns, id, gate.NoLottery, func(g *dibs.GateSpec) bool {
		return h.lotteries != nil && g.Room != nil && g.Room.Mode == dibs.Lottery
	})
}

func (h *lotteryHandlers) register() {
	const path = "/v1/campaigns/{id}/lottery"
	h.lists = lists.New()
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
		method: http.MethodGet, path: path, id: "get-lottery", tag: tagGates, access: open, counted: true,
		summary: "Show a lottery",
		description: "It has what is fixed before registration opens (`seed_hash`), what the closing fixes (`list_hash`), and what the draw reveals " +
			"(`seed`, `cutoff`): with the entries, anyone can draw again.",
	}, h.show)
	change(h.routes, operation{
		method: http.MethodPost, path: path + "/public-value", id: "tell-public-value", tag: tagGates, access: adminOnly, second: &second{act: access.ActPublicValue},
		summary: "Give a lottery the public value that it waits for", example: `{"value":"3888.6"}`,
		description: "Once, after the closing, in the format that was announced, or else in the value's simplest spelling: a number without separators and trailing zeros. " +
			"The same value again changes nothing; another one is refused. Then the winners are drawn.",
	}, func(ctx context.Context, _ *call, in *PathID, body *dibs.PublicValueSpec) (gate.LotteryView, error) {
		campaign, err := h.campaign(ctx, in.ID)
		if err != nil {
			return gate.LotteryView{}, err
		}
		return h.lotteries.TellPublicValue(ctx, campaign, body.Value)
	})
	h.plain(operation{
		method: http.MethodGet, path: path + "/entries", id: "lottery-entries", tag: tagGates, access: open, counted: true,
		summary: "The closed list of a lottery", description: "A hash a line, in ascending order. The SHA-256 of it is `list_hash`.",
	}, typeText, func(c *call, _ http.ResponseWriter, _ *http.Request) error { return h.entries(c) })
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
// The hash is read before the file is made, and names it: two requests for one list
// share one file.
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
	if v.ListHash == "" {
		// It says that the list is not closed; where it has just been closed, the client
		// asks again.
		return cmp.Or(h.lotteries.WriteEntries(ctx, campaign, io.Discard), error(lists.ErrMany))
	}
	header := c.Header()
	// A closed list never changes.
	tag := `"` + v.ListHash + `"`
	if web.HasTag(c.request.Header, tag) {
		header.Set("Cache-Control", keepList)
		header.Set("ETag", tag)
		c.WriteHeader(http.StatusNotModified)
		return nil
	}
	at := h.proxies.Client(c.request)
	if !h.lists.Enter(at) {
		return lists.ErrMany
	}
	defer h.lists.Leave(at)
	file, done, err := h.lists.Open(ctx, v.ListHash, func(ctx context.Context, w io.Writer) error {
		return h.lotteries.WriteEntries(ctx, campaign, w)
	})
	if err != nil {
		return err
	}
	defer done()
	header.Set("Cache-Control", keepList)
	header.Set("ETag", tag)
	header.Set("Content-Type", typeText)
	header.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	if err := web.SendPaced(&c.Recorder, io.NewSectionReader(file.File, 0, file.Size)); err != nil {
		h.log.DebugContext(ctx, "an answer was not delivered", "request_id", c.id, "err", err)
	}
	return nil
}
