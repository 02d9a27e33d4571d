package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
)

// wanted is a campaign as a file describes it: the body of POST /v1/campaigns, and
// the state that the campaign should have.
type wanted struct {
	dibs.CampaignSpec
	State dibs.State `json:"state,omitempty"`
}

// applied is what was done with one campaign.
type applied struct {
	ID      string     `json:"id"`
	State   dibs.State `json:"state"`
	Done    []string   `json:"done"`
	Notes   []string   `json:"notes,omitempty"`
	Planned bool       `json:"planned,omitempty"`
}

// newApplyCommand is for campaigns that are kept in a file, under version control say. It
// is built on connected, since the explanation of an error belongs behind the name of
// the campaign that it is about.
func newApplyCommand() *cobra.Command {
	var file string
	var dryRun bool
	cmd := connected(cli.WithOutput(&cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or change campaigns to match a file",
		Long: `Create or change campaigns to match a file; applying the file again changes nothing.
It is YAML or JSON: one campaign, a list, or several YAML documents, each as POST
/v1/campaigns takes it and with an id. "state" may be draft, published, paused or
ended. Absent fields stay as they are. The stock of an existing campaign is compared
and never changed: see dibs campaign stock.`,
		Args: cobra.NoArgs,
	}), func(ctx context.Context, s *session) error {
		list, err := readWanted(s.cmd.InOrStdin(), file)
		if err != nil {
			return err
		}
		return s.apply(ctx, list, dryRun)
	})
	cmd.Flags().StringVarP(&file, "file", "f", "", "The `FILE` to apply, - for the standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "Show what would be done, and do nothing")
	return cmd
}

// readWanted reads all campaigns of a file, so that a fault in the last one is found
// before the first one is applied.
func readWanted(in io.Reader, file string) ([]wanted, error) {
	switch file {
	case "":
		return nil, cli.Usagef("name a file: dibs campaign apply -f campaigns.yaml")
	case "-":
		file = "the standard input"
	default:
		f, err := os.Open(file)
		if err != nil {
			return nil, cli.Usage(err)
		}
		defer f.Close()
		in = f
	}
	documents, err := readDocuments(in)
	if err != nil {
		return nil, cli.Usagef("%s: %w", file, err)
	}
	list := make([]wanted, len(documents))
	seen := map[string]bool{}
	for i, d := range documents {
		w := &list[i]
		if err := decodeStrictly(d, w); err != nil {
			return nil, cli.Usagef("%s, campaign %d: %w", file, i+1, err)
		}
		switch {
		case !dibs.ValidID(w.ID):
			return nil, cli.Usagef("%s, campaign %d: id is required, 1-64 characters of A-Z a-z 0-9 . _ -", file, i+1)
		case seen[w.ID]:
			return nil, cli.Usagef("%s: campaign %s is named twice", file, w.ID)
		}
		seen[w.ID] = true
	}
	if len(list) == 0 {
		return nil, cli.Usagef("%s has no campaigns", file)
	}
	return list, nil
}

// readDocuments reads YAML, of which JSON is a part, and flattens lists.
func readDocuments(in io.Reader) ([]any, error) {
	var list []any
	for dec := yaml.NewDecoder(in); ; {
		var d any
		err := dec.Decode(&d)
		switch many, isList := d.([]any); {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, err
		case isList:
			list = append(list, many...)
		case d != nil:
			list = append(list, d)
		}
	}
}

// decodeStrictly decodes a document by its JSON names, and refuses unknown fields.
func decodeStrictly(document any, into *wanted) error {
	raw, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("must be a campaign: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err = dec.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("must be a campaign, not %s", wrong.Value)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s cannot be %s", strings.TrimPrefix(wrong.Field, "CampaignSpec."), wrong.Value)
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// apply applies the campaigns one after the other. After a failure it shows what was
// done before.
func (s *session) apply(ctx context.Context, list []wanted, dryRun bool) error {
	t := cli.NewTable("ID", "STATE", "DONE")
	if dryRun {
		t.Head[2] = "WOULD BE DONE"
	}
	var results []applied
	var failed error
	for i := range list {
		a := applying{admin: s.Client, w: &list[i], dry: dryRun}
		if err := a.run(ctx); err != nil {
			failed = fmt.Errorf("campaign %s: %w", a.w.ID, Explain(s.url, err))
			break
		}
		done := strings.Join(a.done, ", ")
		if done == "" {
			done = "unchanged"
		}
		t.Add(a.w.ID, a.state, done)
		for _, note := range a.notes {
			s.cmd.PrintErrf("note: campaign %s: %s\n", a.w.ID, note)
		}
		results = append(results, applied{ID: a.w.ID, State: a.state, Done: append([]string{}, a.done...), Notes: a.notes, Planned: dryRun})
	}
	if len(results) > 0 {
		failed = errors.Join(failed, cli.Show(s.cmd, results, t))
	}
	return failed
}
