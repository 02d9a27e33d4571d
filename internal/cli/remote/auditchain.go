package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/internal/cli"
)

// errLogBroken makes the verb exit with 1 after it has shown what is wrong.
var errLogBroken = errors.New("the admin log was changed")

// newAuditVerifyCommand checks the chain over the admin log: by the server, which also compares the
// entries of the log, or from an exported file, on this machine alone.
func newAuditVerifyCommand() *cobra.Command {
	var known, file string
	cmd := connected(cli.WithOutput(&cobra.Command{
		Use:   "verify",
		Short: "Check that the admin log is whole; exit 1 when it is not",
		Long: `Check that no entry of the admin log was changed, removed or added. Each entry has
its place in a chain of hashes. An administrator of the database could write a whole
chain afresh: keep the record that this verb shows as head elsewhere, and give it as
--known the next time. With --file, the verb checks what dibs audit export wrote, and
asks no server: it needs no key.`,
		Example: `  dibs audit verify
  dibs audit verify --known 1042:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  dibs audit export > audit.jsonl && dibs audit verify --file audit.jsonl`,
		Args: cobra.NoArgs,
	}), func(ctx context.Context, s *session) error {
		return showChain(s.cmd, known, func(point access.ChainPoint) (access.ChainReport, error) {
			r, err := s.Audit.VerifyLog(ctx, point)
			return r, Explain(s.url, err)
		})
	})
	ask := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// It needs neither a server nor a key.
		if cmd.Flags().Changed("file") {
			return showChain(cmd, known, func(point access.ChainPoint) (access.ChainReport, error) { return checkChainFile(file, point) })
		}
		return ask(cmd, args)
	}
	cmd.Flags().StringVar(&known, "known", "", "A `RECORD` that the chain has to go through: N:HASH, as an earlier run showed it")
	cmd.Flags().StringVar(&file, "file", "", "Check this `FILE` of dibs audit export instead of the server's log")
	return cmd
}

// showChain shows what check says of the chain, and fails when it is not whole.
func showChain(cmd *cobra.Command, known string, check func(access.ChainPoint) (access.ChainReport, error)) error {
	point, err := access.ReadChainPoint(known)
	if err != nil {
		return cli.Usagef("--known must be a record's number, a colon and its hash")
	}
	r, err := check(point)
	if err != nil {
		return err
	}
	if err := cli.Show(cmd, r, chainTable(&r)); err != nil {
		return err
	}
	if !r.Whole {
		return errLogBroken
	}
	return nil
}

// newAuditExportCommand writes the chain as JSON lines as it comes: it may have millions. When it exits
// with 1, the output may have a part of it only.
func newAuditExportCommand() *cobra.Command {
	return talk(&cobra.Command{
		Use:   "export",
		Short: "Write the admin log with its chain as JSON lines, oldest first",
		Long: `Write the admin log with its chain as JSON lines, oldest first: a record for each
time that an entry was written. dibs audit verify --file checks it; without dibs,
the SHA-256 of prev and record, one after the other, is hash, and hash is the prev of
the next line.`,
		Example: `  dibs audit export > audit.jsonl`,
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, s *session) error {
		out := cli.JSONLines(s.cmd)
		page := dibs.Page{Limit: dibs.MaxPage}
		for {
			l, err := s.Audit.Chain(ctx, page)
			if err != nil {
				return err
			}
			for i := range l.Items {
				if err := out.Encode(&l.Items[i]); err != nil {
					return err
				}
			}
			if page.Cursor = l.NextCursor; page.Cursor == "" {
				return nil
			}
		}
	})
}

// maxChainLine bounds a line of an export: the texts of an entry, each with its escapes and its seals.
const maxChainLine = 4 << 20

// checkChainFile checks an export. An empty file may be what an export that failed has left: it shows
// of no log that it is whole.
func checkChainFile(name string, known access.ChainPoint) (r access.ChainReport, err error) {
	f, err := os.Open(name)
	if err != nil {
		return r, cli.Usagef("--file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	check := access.ChainCheck{Known: known}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxChainLine)
	for n := 1; lines.Scan(); n++ {
		var v access.ChainLinkView
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return r, fmt.Errorf("%s: line %d is no line of dibs audit export: %w", name, n, err)
		}
		if l := v.Link(); !check.Add(&l) {
			break
		}
	}
	if r = check.Report(nil); r.Last == 0 && lines.Err() == nil {
		return r, fmt.Errorf("%s has no records of dibs audit export", name)
	}
	return r, lines.Err()
}

// chainFaults says what each fault means.
var chainFaults = map[access.ChainFault]string{
	access.FaultHash:    "the record was changed, or does not follow the one before",
	access.FaultGap:     "records are missing",
	access.FaultEntry:   "the entry is not what its record says",
	access.FaultMissing: "the entry is gone",
	access.FaultStray:   "the log has an entry that the chain does not know",
	access.FaultKnown:   "the chain does not go through the record of --known",
}

// chainTable shows a report.
func chainTable(r *access.ChainReport) *cli.Table {
	t := cli.NewTable()
	if r.Whole {
		t.Add("whole", "every entry is as its record says")
	} else {
		t.Add("BROKEN", fmt.Sprintf("at record %d: %s", r.BrokenAt, chainFaults[r.Fault]))
		t.Field("entry", r.Entry)
	}
	t.Add("records", fmt.Sprintf("%d to %d", r.First, r.Last))
	t.Field("head", chainHead(r))
	t.Add("entries", r.Entries)
	t.Add("erasures", r.Erased)
	t.Add("older records", r.Older)
	t.Add("before the chain", r.Unchained)
	return t
}

// chainHead is the last record as --known takes it; empty for a chain without records.
func chainHead(r *access.ChainReport) string {
	if r.Last == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%s", r.Last, r.Head)
}
