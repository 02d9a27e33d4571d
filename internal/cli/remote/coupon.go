package remote

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/internal/cli/config"
)

func newCouponCommand() *cobra.Command {
	cmd := cli.Family(&cobra.Command{
		Use:   "coupon",
		Short: "Import the codes of coupons, and export those that are left",
		Long: `Import the codes of coupons into a campaign of a server: the one at --url, with
the API key --admin-key or $DIBS_ADMIN_KEY. Campaigns are made by dibs campaign
create --kind coupon; dibs claim list --code finds a coupon by its code, and dibs
claim redeem and unredeem use it and roll that back.`,
	})
	cmd.AddCommand(newImportCommand(), newExportCommand())
	return cmd
}

func newImportCommand() *cobra.Command {
	var output, key string
	cmd := &cobra.Command{
		Use:   "import CAMPAIGN FILE",
		Short: "Add the codes of a CSV file to a campaign, all of them or none",
		Long: `Add the codes of a CSV file to a campaign of items, in one transaction: all of
them or none. The file has one code on each line, quoted or not; a first line
that says code is left out. When lines cannot be read, or come twice, the first
of them are named.`,
		Example: `  dibs campaign create --id spring --kind coupon --title "Spring" --import --ends +720h
  dibs coupon import spring codes.csv
  dibs campaign publish spring`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			file, err := os.Open(args[1])
			if err != nil {
				return cli.Usage(err)
			}
			defer file.Close()
			lines, err := countLines(file)
			if err != nil {
				return fmt.Errorf("%s: %w", args[1], err)
			}
			told, end := importProgress(cmd.ErrOrStderr(), lines, "codes")
			v, replayed, err := api.ImportCodes(cmd.Context(), args[0], file, key, told)
			end()
			if err != nil {
				return ExplainCall(c, err)
			}
			if replayed {
				fmt.Fprintln(cmd.ErrOrStderr(), "dibs: this had been done before; nothing changed")
			}
			t := cli.Table{}
			t.Add("campaign", v.CampaignID)
			t.Add("imported", strconv.FormatInt(v.Imported, 10))
			t.Add("stock", strconv.FormatInt(v.Stock, 10))
			return cli.Show(cmd, output, v, &t)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "An idempotency `KEY`: the same file under the same key is imported once")
	return addCall(cmd, &output)
}

func newExportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export CAMPAIGN",
		Short: "Write the codes that nobody has claimed as CSV",
		Long: `Write the codes of a campaign that nobody has claimed, and that were not
withdrawn, as CSV: a file that dibs coupon import takes. While the campaign is
open, any of them may be claimed in the next moment: end or pause it first.`,
		Example: `  dibs campaign end spring
  dibs coupon export spring > left.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, api, err := Connect(cmd)
			if err != nil {
				return err
			}
			return ExplainCall(c, api.UnclaimedCodesCSV(cmd.Context(), args[0], cmd.OutOrStdout()))
		},
	}
	config.AddFlags(cmd, config.ClientKeys)
	return cmd
}
