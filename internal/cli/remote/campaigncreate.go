package remote

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

// createOrder is a campaign as flags describe it.
type createOrder struct {
	spec         dibs.CampaignSpec
	kind         string
	starts, ends string
	product      string
	units        int64
	items        []string
	itemsFile    string
	imported     bool
	codes        int64
	pattern      string
	limit        int64
	price        int64
	currency     string
	tiers        []string
	payWithin    time.Duration
	latePayment  string
	validFor     time.Duration
	validUntil   string
	shards       int
	publish      bool
	room         roomFlags
}

func newCreateCommand() *cobra.Command {
	o := &createOrder{}
	var output string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Draft a campaign from flags, and publish it with --publish",
		Example: `  dibs campaign create --id phone-noon --kind sale --title "Phone at noon" --units 200 \
    --starts 2026-12-01T04:00:00Z --ends 2026-12-01T06:00:00Z --price 99900 --currency CNY
  dibs campaign create --kind coupon --title "Coupon rain" --codes 5000 --ends +2h --publish`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := o.campaign(cmd, time.Now())
			if err != nil {
				return err
			}
			return call(cmd, output, func(ctx context.Context, api *client.Client) (dibs.CampaignView, error) {
				v, err := api.CreateCampaign(ctx, spec, "")
				if err == nil && o.publish {
					v, err = api.Publish(ctx, v.ID)
				}
				return v, err
			})
		},
	}
	o.addFlags(cmd)
	return addCall(cmd, &output)
}

func (o *createOrder) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.spec.ID, "id", "", "The campaign's `ID` (default made up)")
	f.StringVar(&o.kind, "kind", string(dibs.Sale), "What it gives: sale or coupon, `KIND`")
	f.StringVar(&o.spec.Title, "title", "", "Its `TITLE`")
	f.StringVar(&o.spec.Comment, "comment", "", "A `TEXT` for admins")
	f.StringVar(&o.product, "product", "", "The `ID` of the product that is sold or given")
	f.StringVar(&o.starts, "starts", "now", "The first moment: a `TIME` such as 2026-12-01T04:00:00Z, now, or +1h from now")
	f.StringVar(&o.ends, "ends", "", "The first moment after it: a `TIME` like that of --starts")
	f.Int64Var(&o.units, "units", 0, "A stock of `N` equal units")
	f.StringSliceVar(&o.items, "items", nil, "A stock of distinct items, codes or seats: `A1,A2`")
	f.StringVar(&o.itemsFile, "items-file", "", "A stock of distinct items, a line of `FILE` each")
	f.BoolVar(&o.imported, "import", false, "A stock of distinct items that is imported later, by dibs coupon import")
	f.Int64Var(&o.codes, "codes", 0, "A stock of `N` codes that dibs generates")
	f.StringVar(&o.pattern, "pattern", "", "The form of generated codes, X for a random character (default XXXX-XXXX-XXXX)")
	f.Int64Var(&o.limit, "limit", 1, "The most units one user may hold, `N`")
	f.Int64Var(&o.price, "price", 0, "The price per unit in minor units, `AMOUNT` (default the product's)")
	f.StringVar(&o.currency, "currency", "", "The price's currency, `CODE` such as CNY")
	f.StringSliceVar(&o.tiers, "tier", nil, "From a unit of a claim on, the price in percent: `2:50` for the second unit at half price")
	f.DurationVar(&o.payWithin, "pay-within", 0, "The time to pay (default nothing to wait for)")
	f.StringVar(&o.latePayment, "late-payment", "", "What a payment after the deadline does: reclaim or refund_due")
	f.DurationVar(&o.validFor, "valid-for", 0, "A coupon's life from its claim on (default no end)")
	f.StringVar(&o.validUntil, "valid-until", "", "When coupons end: a `TIME` like that of --starts")
	f.Int64Var(&o.spec.LowStock, "low-stock", 0, "Operations hear of it when `N` are left, or fewer (default never)")
	f.IntVar(&o.shards, "shards", 1, "Into how many parts the stock is divided, `N`")
	o.room.addFlags(cmd)
	f.BoolVar(&o.publish, "publish", false, "Open it to users at once")
}

// campaign is the spec that the flags describe. The server judges it; here only
// what the flags cannot say is refused.
func (o *createOrder) campaign(cmd *cobra.Command, now time.Time) (dibs.CampaignSpec, error) {
	given := cmd.Flags().Changed
	spec := o.spec
	spec.Kind, spec.LatePayment = dibs.Kind(o.kind), dibs.LatePayment(o.latePayment)
	var err error
	if spec.StartsAt, err = parseMoment("--starts", o.starts, now); err != nil {
		return spec, err
	}
	if spec.EndsAt, err = parseMoment("--ends", o.ends, now); err != nil {
		return spec, err
	}
	if spec.Stock, err = o.stock(given); err != nil {
		return spec, err
	}
	if given("price") != given("currency") {
		return spec, cli.Usagef("--price and --currency belong together")
	}
	if given("price") {
		spec.Price = &dibs.Money{Amount: o.price, Currency: o.currency}
	}
	if spec.Tiers, err = parseTiers(o.tiers); err != nil {
		return spec, err
	}
	if given("product") {
		spec.ProductID = &o.product
	}
	if given("limit") {
		spec.Limit = &o.limit
	}
	if given("pay-within") {
		d := dibs.Duration(o.payWithin)
		spec.PayWithin = &d
	}
	if given("valid-for") {
		d := dibs.Duration(o.validFor)
		spec.ValidFor = &d
	}
	if given("valid-until") {
		until, err := parseMoment("--valid-until", o.validUntil, now)
		if err != nil {
			return spec, err
		}
		spec.ValidUntil = &until
	}
	if given("shards") {
		spec.Shards = &o.shards
	}
	return spec, o.room.apply(cmd, &spec, now)
}

// parseTiers reads tiers such as 2:50.
func parseTiers(texts []string) ([]dibs.Tier, error) {
	var tiers []dibs.Tier
	for _, text := range texts {
		unit, percent, _ := strings.Cut(text, ":")
		from, err := strconv.ParseInt(unit, 10, 64)
		of, percentErr := strconv.ParseInt(percent, 10, 64)
		if err != nil || percentErr != nil {
			return nil, cli.Usagef("--tier must be like 2:50, the unit and the percent, not %q", text)
		}
		tiers = append(tiers, dibs.Tier{FromUnit: from, Percent: of})
	}
	return tiers, nil
}

// stock is the one stock that was given.
func (o *createOrder) stock(given func(string) bool) (dibs.StockSpec, error) {
	var s dibs.StockSpec
	n := 0
	for _, name := range []string{"units", "items", "items-file", "import", "codes"} {
		if given(name) {
			n++
		}
	}
	if n != 1 {
		return s, cli.Usagef("give one stock: --units, --items, --items-file, --import or --codes")
	}
	switch {
	case given("units"):
		s.Units = &o.units
	case given("items"):
		s.Items = o.items
	case given("import"):
		s.Items = []string{}
	case given("codes"):
		s.Codes = &dibs.CodesSpec{Count: o.codes, Pattern: o.pattern}
	default:
		lines, err := readLines(o.itemsFile)
		if err != nil {
			return s, fmt.Errorf("--items-file: %w", err)
		}
		s.Items = lines
	}
	if given("pattern") && !given("codes") {
		return s, cli.Usagef("--pattern belongs to --codes")
	}
	return s, nil
}

// readLines returns the lines of a file that are not blank.
func readLines(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, nil
}
