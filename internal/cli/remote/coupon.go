package remote

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// newCouponCommand returns the verbs on /v1/campaigns/{id}/codes.
func newCouponCommand() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "coupon",
		Short: "Import the codes of coupons, and export the unclaimed ones",
		Long: `Import the codes of coupons into a campaign, and export the unclaimed ones, on the
server at --url with the API key --admin-key or $DIBS_ADMIN_KEY. dibs campaign
create --kind coupon makes the campaign; dibs claim list --code finds a coupon by its
code; dibs claim redeem and unredeem record its use and take that back.`,
	}, newImportCommand(), newExportCommand())
}

// newImportCommand adds codes to a campaign. The server checks every line and writes all codes in
// one transaction, or names the first bad lines and writes none. Without --key a repeat of an import
// that got no answer may be refused, since the codes are in the campaign already; with it the repeat
// shows the first answer.
func newImportCommand() *cobra.Command {
	var key string
	cmd := ask(&cobra.Command{
		Use:   "import CAMPAIGN FILE",
		Short: "Add the codes of a CSV file to a campaign, all of them or none",
		Long: `Add the codes of a CSV file to a campaign of items in one transaction, all of them
or none. The file has one code on each line, quoted or not; a first line that says
code is skipped. When the server cannot read some lines, or some codes come twice,
it names the first of them and changes nothing.`,
		Example: `  dibs campaign create --id spring --kind coupon --title "Spring" --import --ends +720h
  dibs coupon import spring codes.csv
  dibs campaign publish spring`,
		Args: cobra.ExactArgs(2),
	}, func(ctx context.Context, s *session) (api.ImportView, error) {
		return sendFile(s, s.args[1], "codes", func(file *os.File, progress func(int64)) (api.ImportView, error) {
			v, replayed, err := s.Campaigns.ImportCodes(ctx, s.args[0], file, key, progress)
			s.noteReplay(replayed)
			return v, err
		})
	}, func(v *api.ImportView) *cli.Table {
		return cli.Facts("campaign", v.CampaignID, "imported", v.Imported, "stock", v.Stock)
	})
	cmd.Flags().StringVar(&key, "key", "", "An idempotency `KEY`: the same file under the same key is imported once")
	return cmd
}

// newExportCommand streams the codes to the output as they come: there may be millions. When it exits
// with 1, the output may have a part of them only.
func newExportCommand() *cobra.Command {
	return talk(&cobra.Command{
		Use:   "export CAMPAIGN",
		Short: "Write the unclaimed codes of a campaign as CSV",
		Long: `Write the codes of a campaign that were neither claimed nor withdrawn as CSV: a file
that dibs coupon import takes. While the campaign is open, users may claim any of
them: end or pause it first.`,
		Example: `  dibs campaign end spring
  dibs coupon export spring > left.csv`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, s *session) error {
		return s.Campaigns.UnclaimedCodesCSV(ctx, s.args[0], s.cmd.OutOrStdout())
	})
}
