package httpapi

import (
	"context"
	"encoding/csv"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/campaigns"
)

// csvFile is a list as a CSV file.
// row returns as many cells as there are columns.
type csvFile[T any] struct {
	name    string
	columns []string
	row     func(*T) []string
}

// claimsCSV is a list of claims as a file.
func claimsCSV(name string) csvFile[dibs.Claim] {
	return csvFile[dibs.Claim]{name: name, row: claimRow, columns: []string{
		"id", "campaign_id", "kind", "user_id", "quantity", "status", "status_code", "order_type",
		"items", "amount", "currency", "pay_by", "created_at", "product_id", "payment_ref", "reference", "comment", "updated_at",
	}}
}

// listOrCSV answers a call with one page of a list, or in the format csv with all of
// them, as a stream.
func listOrCSV[T, V any](ctx context.Context, a *routes, c *call, format string, page dibs.Page, file csvFile[T],
	read func(dibs.Page) (dibs.List[T], error), view func(*T) V,
) (v api.ListView[V], err error) {
	if format != "csv" {
		return listOf(view)(read(page))
	}
	// The first page is read before the answer begins, so that its error is answered
	// as one.
	first, err := read(dibs.Page{Limit: dibs.MaxPage})
	if err != nil {
		return v, err
	}
	c.Header().Set("Content-Disposition", `attachment; filename="`+file.name+`"`)
	c.stream = func(w io.Writer) error { return streamCSV(ctx, a.log, c, w, file, first, read) }
	return v, nil
}

// pageWrite is how long one page may take to reach the reader.
// A file has no bound of its own: it goes on as long as its reader takes a page in
// that time.
const pageWrite = 30 * time.Second

// streamCSV writes all pages. When it fails in the middle, it cuts the connection,
// so that the reader does not take a part for the whole.
func streamCSV[T any](ctx context.Context, log *slog.Logger, c *call, w io.Writer, file csvFile[T], l dibs.List[T], read func(dibs.Page) (dibs.List[T], error)) error {
	out := csv.NewWriter(w)
	rc := http.NewResponseController(c)
	err := out.Write(file.columns)
	for err == nil {
		// The server's deadline is for one answer of the usual size.
		if err = rc.SetWriteDeadline(time.Now().Add(pageWrite)); err != nil {
			break
		}
		rows := make([][]string, len(l.Items))
		for i := range l.Items {
			rows[i] = file.row(&l.Items[i])
		}
		if err = out.WriteAll(rows); err != nil || l.NextCursor == "" {
			break
		}
		l, err = read(dibs.Page{Limit: dibs.MaxPage, Cursor: l.NextCursor})
	}
	if err != nil {
		log.WarnContext(ctx, "a CSV was cut off", "request_id", c.id, "err", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func claimRow(c *dibs.Claim) []string {
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
		c.ID, campaigns.Cell(c.CampaignID), string(c.Kind), campaigns.Cell(c.UserID), strconv.FormatInt(c.Quantity, 10), c.Status.String(),
		strconv.Itoa(int(c.Status)), strconv.Itoa(int(c.OrderType)), campaigns.Cell(strings.Join(c.Items, "\n")), amount, currency, payBy,
		c.CreatedAt.UTC().Format(time.RFC3339Nano), campaigns.Cell(c.ProductID), campaigns.Cell(paid),
		campaigns.Cell(c.Reference), campaigns.Cell(c.Comment), c.UpdatedAt.UTC().Format(time.RFC3339Nano),
	}
}
