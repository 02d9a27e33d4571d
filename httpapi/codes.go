package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"
)

// codesInput asks for a campaign's codes; exported as PathID is.
type codesInput struct {
	PathID
	PageQuery
	Format string `query:"format" enum:"json,csv" doc:"csv streams all of them"`
}

// registerCodes adds the list of codes that nobody has claimed.
func (a *api) registerCodes() {
	const path = "/v1/campaigns/{id}/codes"
	register(a, operation{
		method: http.MethodGet, path: path, id: "unclaimed-codes", tag: tagAdmin, access: adminOnly, role: dibs.RolePublisher, strictQuery: true, noted: true,
		summary: "List the codes that nobody has claimed",
		description: "Those that were not withdrawn, in the order in which they came. While the campaign is open, any of them may be claimed in the next " +
			"moment: end or pause it first. `format=csv` streams all of them, as a file that can be imported again. " +
			"The audit log notes who asked.",
	}, a.unclaimedCodes)
	a.alsoCSV(path)
}

func (a *api) unclaimedCodes(ctx context.Context, c *call, in *codesInput) (v dibs.ListView[dibs.CodeView], err error) {
	page := in.page()
	if in.Format == "csv" {
		page = dibs.Page{Limit: dibs.MaxPage}
	}
	l, err := a.svc.UnclaimedCodes(ctx, in.ID, page)
	if err != nil {
		return v, err
	}
	if in.Format != "csv" {
		return listOf(l, func(code *dibs.CodeView) dibs.CodeView { return *code }), nil
	}
	name := "codes.csv"
	if dibs.ValidID(in.ID) {
		name = in.ID + "-codes.csv"
	}
	answerCSV(ctx, a, c, csvOf[dibs.CodeView]{
		name: name, columns: []string{"code"}, row: func(code *dibs.CodeView) []string { return []string{code.Code} },
		next: func(page dibs.Page) (dibs.List[dibs.CodeView], error) { return a.svc.UnclaimedCodes(ctx, in.ID, page) },
	}, l)
	return v, nil
}
