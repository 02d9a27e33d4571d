package httpapi

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/dibs-dev/dibs"
)

var errNoClaim = dibs.Fail(dibs.NotFound, dibs.Text{EN: "there is no such claim", ZH: "该领取记录不存在"})

// claimsInput filters a campaign's claims.
type claimsInput struct {
	PathID
	PageQuery
	UserID string `query:"user_id" maxLength:"64" doc:"only this user's"`
	Status string `query:"status" enum:"pending,confirmed,released,refunded" doc:"only of this status"`
	Format string `query:"format" enum:"json,csv" doc:"csv streams all of them, without pages"`
}

func claimView(c *dibs.Claim) dibs.ClaimView { return c.View() }

func (a *api) registerClaims() {
	a.documentClaim(operation{
		method: http.MethodPost, path: "/v1/campaigns/{id}/claims", id: "claim", tag: tagUser, access: userOnly,
		summary: "Claim", example: `{"quantity":1}`,
		description: "Granted or why not, at once and for good. The body may be absent, `{}`, or name a quantity.",
	})
	shape := shapeOf[claimBody](a.schemas)
	a.routes.Handle(claimPattern, &claimHandler{api: a, shape: shape})
	register(a, operation{
		method: http.MethodGet, path: "/v1/claims/{id}", id: "get-claim", tag: tagUser, access: either,
		summary: "Show a claim", description: "Users see their own claims only; anything else is not found. A claim just granted is found at once. With an API key, its events too.",
	}, func(ctx context.Context, c *call, in *PathID) (dibs.ClaimView, error) {
		claim, err := a.svc.FindClaim(ctx, in.ID)
		if err != nil {
			return dibs.ClaimView{}, err
		}
		if !c.who.isAdmin() && claim.UserID != c.who.user {
			return dibs.ClaimView{}, errNoClaim
		}
		return viewFor(c, claim), nil
	})
	register(a, operation{
		method: http.MethodGet, path: "/v1/campaigns/{id}/claims", id: "campaign-claims", tag: tagAdmin, access: adminOnly,
		summary: "List a campaign's claims", strictQuery: true,
		description: "In the order in which they were granted, or one user's, newest first. `format=csv` streams all of them.",
	}, a.campaignClaims)
	a.alsoCSV("/v1/campaigns/{id}/claims")
}

// alsoCSV documents that a list may come as CSV.
func (a *api) alsoCSV(path string) {
	ok := a.huma.OpenAPI().Paths[path].Get.Responses["200"]
	ok.Content[typeCSV] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
}

func (a *api) campaignClaims(ctx context.Context, c *call, in *claimsInput) (v dibs.ListView[dibs.ClaimView], err error) {
	f := dibs.ClaimFilter{UserID: in.UserID}
	if status, ok := dibs.ParseStatus(in.Status); ok {
		f.Status = &status
	}
	page := in.page()
	if in.Format == "csv" {
		page = dibs.Page{Limit: dibs.MaxPage}
	}
	l, err := a.svc.CampaignClaims(ctx, in.ID, f, page)
	if err != nil {
		return v, err
	}
	if in.Format != "csv" {
		return listOf(l, claimView), nil
	}
	name := "claims.csv"
	if dibs.ValidID(in.ID) {
		name = in.ID + ".csv"
	}
	answerCSV(ctx, a, c, claimsCSV(name, func(page dibs.Page) (dibs.List[dibs.Claim], error) { return a.svc.CampaignClaims(ctx, in.ID, f, page) }), l)
	return v, nil
}

// csvOf is a list as a CSV file.
type csvOf[T any] struct {
	name    string
	columns []string
	row     func(*T) []string
	// next reads a page.
	next func(dibs.Page) (dibs.List[T], error)
}

// claimsCSV is a list of claims as a file.
func claimsCSV(name string, next func(dibs.Page) (dibs.List[dibs.Claim], error)) csvOf[dibs.Claim] {
	return csvOf[dibs.Claim]{name: name, columns: csvColumns, row: csvRow, next: next}
}

// answerCSV answers a call with all pages of a list, the first of which is
// there.
func answerCSV[T any](ctx context.Context, a *api, c *call, file csvOf[T], first dibs.List[T]) {
	c.Header().Set("Content-Disposition", `attachment; filename="`+file.name+`"`)
	c.stream = func(w io.Writer) error { return streamCSV(ctx, a, c, w, file, first) }
}

const typeCSV = "text/csv; charset=utf-8"

var csvColumns = []string{
	"id", "campaign_id", "kind", "user_id", "quantity", "status", "status_code", "order_type",
	"items", "amount", "currency", "pay_by", "created_at", "product_id", "payment_ref",
}

// pageWrite is how long one page may take to reach the reader.
const pageWrite = 30 * time.Second

// streamCSV writes all pages. When it fails in the middle, the connection is
// cut, so that nobody takes a part for the whole.
func streamCSV[T any](ctx context.Context, a *api, c *call, w io.Writer, file csvOf[T], l dibs.List[T]) error {
	out := csv.NewWriter(w)
	rc := http.NewResponseController(c)
	err := out.Write(file.columns)
	for err == nil {
		// The server's deadline is for one answer of the usual size.
		if err = rc.SetWriteDeadline(time.Now().Add(pageWrite)); err != nil {
			break
		}
		for i := range l.Items {
			if err = out.Write(file.row(&l.Items[i])); err != nil {
				break
			}
		}
		out.Flush()
		if err == nil {
			err = out.Error()
		}
		if err != nil || l.NextCursor == "" {
			break
		}
		l, err = file.next(dibs.Page{Limit: dibs.MaxPage, Cursor: l.NextCursor})
	}
	if err != nil {
		a.log.WarnContext(ctx, "a CSV was cut off", "request_id", c.id, "err", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func csvRow(c *dibs.Claim) []string {
	amount, currency, payBy, paid := "", "", "", ""
	if c.Payment != nil {
		paid = c.Payment.Ref
	}
	if c.Amount != nil {
		amount, currency = strconv.FormatInt(c.Amount.Amount, 10), c.Amount.Currency
	}
	if !c.PayBy.IsZero() {
		payBy = c.PayBy.UTC().Format(time.RFC3339Nano)
	}
	return []string{
		c.ID, c.CampaignID, string(c.Kind), c.UserID, strconv.FormatInt(c.Quantity, 10), c.Status.String(),
		strconv.Itoa(int(c.Status)), strconv.Itoa(int(c.OrderType)), strings.Join(c.Items, "\n"), amount, currency, payBy,
		c.CreatedAt.UTC().Format(time.RFC3339Nano), c.ProductID, paid,
	}
}
