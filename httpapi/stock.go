package httpapi

import (
	"context"
	"io"
	"net/http"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/web"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/campaigns"
)

// Stock is what the handlers of a campaign's stock and codes call. A ref makes a
// change happen once, however often it is sent; it may be empty.
type Stock interface {
	// ChangeStock restocks, or withdraws what is not granted. *dibs.Error of
	// InvalidRequest, InvalidState, or of KeyReused for a ref of another change.
	ChangeStock(ctx context.Context, id string, ch dibs.StockChange, ref string) (*dibs.Campaign, error)
	campaignViews
	// AbandonShard takes a shard off a deployment of the engine that is lost for good.
	// *dibs.Error of NotFound or InvalidState.
	AbandonShard(ctx context.Context, id string, shard int, a campaigns.Abandonment) (*dibs.Campaign, error)
	// ImportCodes adds all codes of a file, or none, and calls done now and then with how
	// many it has written. *dibs.Error of InvalidRequest with the first bad lines.
	ImportCodes(ctx context.Context, id string, file io.ReadSeeker, ref string, done func(written int64)) (*dibs.Imported, error)
	// UnclaimedCodes lists the codes that were neither granted before the call nor
	// withdrawn. *dibs.Error of InvalidState for a campaign without codes.
	UnclaimedCodes(ctx context.Context, id string, page dibs.Page) (dibs.List[campaigns.CodeView], error)
}

// headerImported shows, in interim answers of status 102, how much of a file has
// been imported. Clients that want them send Prefer: progress.
const headerImported = "Dibs-Imported"

// codesInput asks for a campaign's codes.
type codesInput struct {
	PathID
	PageQuery
	Format string `query:"format" enum:"json,csv" doc:"csv streams all of them"`
}

// shardInput names a shard of a campaign.
type shardInput struct {
	PathID
	Shard int `path:"shard" minimum:"0" maximum:"63" doc:"the shard's number, from 0"`
}

// stockHandlers change a campaign's stock, import codes and list them.
// The ref of a change comes from its Idempotency-Key, so a repeat counts once even
// when the memory of the answer was lost.
type stockHandlers struct {
	*routes
	stock Stock
}

func (h *stockHandlers) register() {
	change(h.routes, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/stock", id: "change-stock", tag: tagAdmin, access: adminOnly, role: access.RolePublisher,
		summary: "Restock, or withdraw", example: `{"delta":50,"why":"found another box"}`, maxBody: h.maxAdminBody,
		description: "A negative `delta` withdraws, never below what is granted. A campaign of items is restocked with `items`.",
	}, h.change)
	change(h.routes, operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/shards/{shard}/abandon", id: "abandon-shard", tag: tagAdmin, access: adminOnly, role: access.RoleAdmin,
		second:  &second{act: access.ActAbandon},
		summary: "Give up a shard on a deployment that is lost for good", example: `{"unsold":12}`,
		description: "Only while the shard's deployment of the engine is away, or, for a campaign that is over, was taken out, and another one answers. Another deployment gets the shard within seconds, " +
			"with what the ledger has of it. Grants on the lost one that were not settled are lost: wait for the deployment if it may come back.",
	}, h.abandon)
	const codes = "/v1/campaigns/{id}/codes"
	upload(h.routes, operation{
		method: http.MethodPost, path: codes, id: "import-codes", tag: tagAdmin, access: adminOnly, role: access.RolePublisher,
		summary: "Import codes from a CSV file", example: "code\nSPRING-0001\nSPRING-0002\n",
		description: "One code on each line, quoted or not; a first line `code` is left out. All of them are added to a campaign of items, or none: " +
			"`errors` names the first lines that cannot be read or that come twice. With `Prefer: progress`, interim answers (102) say in `" +
			headerImported + "` how far it is.",
	}, h.maxAdminBody, h.importCodes)
	register(h.routes, operation{
		method: http.MethodGet, path: codes, id: "unclaimed-codes", tag: tagAdmin, access: adminOnly, role: access.RolePublisher, strictQuery: true, logged: true,
		summary: "List the codes that are not claimed",
		description: "Without those that were withdrawn, in the order in which they were imported. While the campaign is open, a user may claim any of them " +
			"at any moment: end or pause it first. `format=csv` streams all of them, as a file that can be imported again. " +
			"The audit log notes each call.",
	}, h.unclaimed)
	h.alsoCSV(codes)
}

func (h *stockHandlers) change(ctx context.Context, c *call, in *PathID, ch *dibs.StockChange) (v api.CampaignView, err error) {
	ref, err := c.ref()
	if err != nil {
		return v, err
	}
	return showCampaign(ctx, h.stock, c.zh)(h.stock.ChangeStock(ctx, in.ID, *ch, ref))
}

func (h *stockHandlers) abandon(ctx context.Context, c *call, in *shardInput, a *campaigns.Abandonment) (api.CampaignView, error) {
	return showCampaign(ctx, h.stock, c.zh)(h.stock.AbandonShard(ctx, in.ID, in.Shard, *a))
}

func (h *stockHandlers) importCodes(ctx context.Context, c *call, file io.ReadSeeker, _ string) (v api.ImportView, err error) {
	ref, err := c.ref()
	if err != nil {
		return v, err
	}
	return viewOf(api.ImportViewOf)(h.stock.ImportCodes(ctx, c.request.PathValue("id"), file, ref, web.Progress(c, c.request, headerImported)))
}

func (h *stockHandlers) unclaimed(ctx context.Context, c *call, in *codesInput) (v api.ListView[campaigns.CodeView], err error) {
	file := csvFile[campaigns.CodeView]{name: "codes.csv", columns: []string{"code"}, row: func(code *campaigns.CodeView) []string { return []string{campaigns.Cell(code.Code)} }}
	if dibs.IsID(in.ID) {
		file.name = in.ID + "-codes.csv"
	}
	return listOrCSV(ctx, h.routes, c, in.Format, in.page(), file, func(page dibs.Page) (dibs.List[campaigns.CodeView], error) {
		return h.stock.UnclaimedCodes(ctx, in.ID, page)
	}, itself)
}
