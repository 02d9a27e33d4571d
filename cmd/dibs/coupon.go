package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

func newCouponCommand() *cobra.Command {
	cmd := family(&cobra.Command{
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
			c, api, err := connect(cmd)
			if err != nil {
				return err
			}
			file, err := os.Open(args[1])
			if err != nil {
				return &usageError{err}
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
				return explainCall(c, err)
			}
			if replayed {
				fmt.Fprintln(cmd.ErrOrStderr(), "dibs: this had been done before; nothing changed")
			}
			t := table{}
			t.add("campaign", v.CampaignID)
			t.add("imported", strconv.FormatInt(v.Imported, 10))
			t.add("stock", strconv.FormatInt(v.Stock, 10))
			return show(cmd, output, v, &t)
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
			c, api, err := connect(cmd)
			if err != nil {
				return err
			}
			return explainCall(c, api.UnclaimedCodesCSV(cmd.Context(), args[0], cmd.OutOrStdout()))
		},
	}
	addSettings(cmd, clientKeys)
	return cmd
}

// countLines counts a file's lines and goes back to its beginning.
func countLines(file *os.File) (lines int64, err error) {
	in := bufio.NewReaderSize(file, 1<<20)
	for {
		chunk, err := in.ReadSlice('\n')
		if len(chunk) > 0 && chunk[len(chunk)-1] == '\n' {
			lines++
		} else if len(chunk) > 0 && errors.Is(err, io.EOF) {
			lines++
		}
		if errors.Is(err, io.EOF) {
			_, err = file.Seek(0, io.SeekStart)
			return lines, err
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, err
		}
	}
}

// importProgress shows how far an import is: by a bar on a terminal, by a line
// now and then elsewhere. What cannot be shown keeps nobody from importing.
func importProgress(to io.Writer, lines int64, what string) (told func(written int64), end func()) {
	if !isTerminal(to) {
		last := time.Now()
		return func(n int64) {
			if time.Since(last) >= progressLine {
				last = time.Now()
				fmt.Fprintf(to, "imported %d of %d %s\n", n, lines, what)
			}
		}, func() {}
	}
	bar := progressbar.NewOptions64(max(lines, 1),
		progressbar.OptionSetWriter(to), progressbar.OptionSetDescription("importing"), progressbar.OptionShowCount(),
		progressbar.OptionShowIts(), progressbar.OptionSetItsString(what), progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish())
	return func(n int64) { _ = bar.Set64(min(n, lines)) }, func() { _ = bar.Exit() }
}

// progressLine is the time between two lines of progress.
const progressLine = time.Second
