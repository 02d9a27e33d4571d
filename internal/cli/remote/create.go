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
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// campaignFlags are a campaign as flags describe it. spec has those that need no conversion; the
// others become fields in read, and a flag that was not given leaves its field to the server.
type campaignFlags struct {
	spec        dibs.CampaignSpec
	kind        string
	window      windowFlags
	product     string
	units       int64
	items       []string
	itemsFile   string
	codes       dibs.CodesSpec
	limit       int64
	ofProduct   int64
	price       moneyFlags
	tiers       []string
	payWithin   time.Duration
	latePayment string
	validFor    time.Duration
	validUntil  string
	shards      int
	room        roomFlags
}

// newCreateCommand creates a campaign. With --id it may be repeated: the second time the server
// refuses it as already_exists, with exit code 1. Without --id a repeat creates a second campaign.
// dibs campaign apply is for repeating.
func newCreateCommand() *cobra.Command {
	o := &campaignFlags{}
	var publish bool
	cmd := ask(&cobra.Command{
		Use:   "create --title TITLE --ends TIME",
		Short: "Draft a campaign from flags, and publish it with --publish",
		Example: `  dibs campaign create --id phone-noon --kind sale --title "Phone at noon" --units 200 \
    --starts 2026-12-01T04:00:00Z --ends 2026-12-01T06:00:00Z --price 999.00CNY
  dibs campaign create --kind coupon --title "Coupon rain" --codes 5000 --ends +2h --publish`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, s *session) (api.CampaignView, error) {
		// All times of one campaign are measured from the same now.
		spec, err := o.read(s.cmd, time.Now())
		if err != nil {
			return api.CampaignView{}, err
		}
		return s.draft(ctx, spec, publish)
	}, campaignColumns.one)
	o.add(cmd)
	cmd.Flags().BoolVar(&publish, "publish", false, "Open it to users at once")
	return cli.Require(cmd, "title", "ends")
}

// draft creates a campaign, and publishes it if the user wants that, by a second call: when that
// one fails, the draft stays, and a note says so.
func (s *session) draft(ctx context.Context, spec dibs.CampaignSpec, publish bool) (api.CampaignView, error) {
	v, err := s.Campaigns.Create(ctx, spec, "")
	if err != nil || !publish {
		return v, err
	}
	id := v.ID
	if v, err = s.Campaigns.Publish(ctx, id); err != nil {
		s.note("the draft " + id + " was created: dibs campaign publish " + id + " opens it")
	}
	return v, err
}

// add adds the flags. Their defaults are those of the server, or none.
func (o *campaignFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	addNames(cmd, &o.spec)
	o.kind = string(dibs.Sale)
	f.Var(cli.OneOf(&o.kind, string(dibs.Sale), string(dibs.Coupon)), "kind", "Its `KIND`: sale or coupon; dibs redpacket create makes red packets")
	f.StringVar(&o.spec.Comment, "comment", "", "A `TEXT` for admins")
	f.StringVar(&o.product, "product", "", "The `ID` of the product that is sold or given")
	o.window.add(cmd)
	f.Int64Var(&o.units, "units", 0, "A stock of `N` equal units")
	f.StringSliceVar(&o.items, "items", nil, "A stock of distinct items, codes or seats: `A1,A2`")
	f.StringVar(&o.itemsFile, "items-file", "", "A stock of distinct items, one on each line of `FILE`")
	f.Bool("import", false, "A stock of distinct items that dibs coupon import adds later")
	f.Int64Var(&o.codes.Count, "codes", 0, "A stock of `N` codes that dibs generates")
	f.StringVar(&o.codes.Pattern, "pattern", "", "The form of generated codes, X for a random character (default XXXX-XXXX-XXXX)")
	f.Int64Var(&o.limit, "limit", 1, "Each user may hold at most `N` units")
	f.Int64Var(&o.ofProduct, "limit-per-product", 0, "Each user may hold at most `N` units of the product, over all of its campaigns with this limit, past ones too")
	o.price.add(cmd, "price", "The price of a unit, an `AMOUNT` such as 999.00CNY (default the product's)", "")
	f.StringSliceVar(&o.tiers, "tier", nil, "The price from a unit of a claim on, in percent: `2:50` halves it from the second unit on")
	f.DurationVar(&o.payWithin, "pay-within", 0, "The time to pay (default no payment needed)")
	f.Var(cli.OneOf(&o.latePayment, string(dibs.Reclaim), string(dibs.RefundDue)), "late-payment", "What a payment after the deadline does: reclaim or refund_due")
	f.DurationVar(&o.validFor, "valid-for", 0, "How long a coupon is valid from its claim on (default forever)")
	f.StringVar(&o.validUntil, "valid-until", "", "When coupons expire: a `TIME` like that of --starts")
	f.Int64Var(&o.spec.LowStock, "low-stock", 0, "Warn operations when `N` or fewer are left (default never)")
	f.IntVar(&o.shards, "shards", 1, "Divide the stock into `N` parts, 1 to 64, for as many cores of Redis")
	o.room.add(cmd)
}

// addNames adds the flags for the names of a campaign.
func addNames(cmd *cobra.Command, spec *dibs.CampaignSpec) {
	cmd.Flags().StringVar(&spec.ID, "id", "", "The campaign's `ID` (default generated)")
	cmd.Flags().StringVar(&spec.Title, "title", "", "Its `TITLE` (required)")
}

// windowFlags are the window of a campaign.
type windowFlags struct{ starts, ends string }

// add adds the flags to a verb.
func (w *windowFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.starts, "starts", "now", "When it starts: a `TIME` such as 2026-12-01T04:00:00Z, now, or +1h from now")
	cmd.Flags().StringVar(&w.ends, "ends", "", "When it ends: a `TIME` like that of --starts (required)")
}

// read sets the window. One now serves both ends, so that "now" and "+1h" are an hour apart. --ends
// is required: without it parseMoment refuses the empty text.
func (w *windowFlags) read(now time.Time, spec *dibs.CampaignSpec) (err error) {
	if spec.StartsAt, err = parseMoment("--starts", w.starts, now); err == nil {
		spec.EndsAt, err = parseMoment("--ends", w.ends, now)
	}
	return err
}

// read returns the campaign that the flags describe. It refuses what the flags cannot express, such
// as two stocks or a time that is none; the server judges the rest, such as a window that ends
// before it begins.
func (o *campaignFlags) read(cmd *cobra.Command, now time.Time) (dibs.CampaignSpec, error) {
	spec := o.spec
	spec.Kind, spec.LatePayment = dibs.Kind(o.kind), dibs.LatePayment(o.latePayment)
	err := o.window.read(now, &spec)
	if err != nil {
		return spec, err
	}
	if spec.Stock, err = o.stock(cmd.Flags().Changed); err != nil {
		return spec, err
	}
	if spec.Price, err = o.price.value(cmd); err != nil {
		return spec, err
	}
	if spec.Tiers, err = parseTiers(o.tiers); err != nil {
		return spec, err
	}
	// nil where the flag was not given: the server's default holds, and may come from the product.
	spec.ProductID = given(cmd, "product", o.product)
	spec.Limit = given(cmd, "limit", o.limit)
	spec.LimitPerProduct = given(cmd, "limit-per-product", o.ofProduct)
	spec.PayWithin = givenDuration(cmd, "pay-within", o.payWithin)
	spec.ValidFor = givenDuration(cmd, "valid-for", o.validFor)
	spec.Shards = given(cmd, "shards", o.shards)
	if cmd.Flags().Changed("valid-until") {
		until, err := parseMoment("--valid-until", o.validUntil, now)
		if err != nil {
			return spec, err
		}
		spec.ValidUntil = &until
	}
	return spec, o.room.read(cmd, &spec, now)
}

// parseTiers reads tiers such as 2:50: from the second unit of a claim on, 50 percent of the price.
// Order and bounds are the server's to judge.
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

// stock returns the one stock that was given; exactly one of the flags must be. --import stands for
// a stock of items that has none yet: an empty list, which is not the same as no list.
func (o *campaignFlags) stock(given func(string) bool) (dibs.StockSpec, error) {
	var s dibs.StockSpec
	n := 0
	for _, name := range []string{"units", "items", "items-file", "import", "codes"} {
		if given(name) {
			n++
		}
	}
	// Two stocks would be one of them left out in silence.
	if n != 1 {
		return s, cli.Usagef("give one stock: --units, --items, --items-file, --import or --codes")
	}
	if given("pattern") && !given("codes") {
		return s, cli.Usagef("--pattern belongs to --codes")
	}
	switch {
	case given("units"):
		s.Units = &o.units
	case given("items"):
		s.Items = trimmed(o.items)
	case given("import"):
		s.Items = []string{}
	case given("codes"):
		s.Codes = &o.codes
	default:
		items, err := readItems(o.itemsFile)
		if err != nil {
			return s, cli.Usagef("--items-file: %w", err)
		}
		s.Items = items
	}
	return s, nil
}

// trimmed returns items without the space around them, as in A1, A2.
func trimmed(items []string) []string {
	for i, item := range items {
		items[i] = strings.TrimSpace(item)
	}
	return items
}

// readItems returns the lines of a file that are not blank, without the space around them, or says
// which of them are no items. It reads the whole file: long lists come by dibs coupon import, which
// does not.
func readItems(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var items, faults []string
	lines, n := map[string]int{}, 0
	for line := range strings.Lines(string(content)) {
		n++
		item := strings.TrimSpace(line)
		switch first := lines[item]; {
		case item == "":
			continue
		case !dibs.IsItem(item):
			faults = append(faults, fmt.Sprintf("line %d %s, not %q", n, dibs.BadItem.EN, item))
		case first > 0:
			faults = append(faults, fmt.Sprintf("line %d is the same as line %d, %q", n, first, item))
		default:
			lines[item] = n
		}
		items = append(items, item)
	}
	switch {
	case len(faults) > 0:
		return nil, fmt.Errorf("%s: %s", path, strings.Join(faults[:min(len(faults), dibs.MaxListedFaults)], "; "))
	case len(items) == 0:
		return nil, fmt.Errorf("%s has no items", path)
	}
	return items, nil
}
