package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
)

// wanted is a campaign as a file describes it: the body of POST /v1/campaigns, and the state that
// the campaign should have; an empty state leaves the campaign in the state that it is in, a new
// one as a draft.
type wanted struct {
	dibs.CampaignSpec
	State dibs.State `json:"state,omitempty"`
}

// applied is what was done with one campaign: Done lists the steps in their order, empty when
// nothing differed; Notes say what differs and was left. With Planned nothing was done.
type applied struct {
	ID      string     `json:"id"`
	State   dibs.State `json:"state"`
	Done    []string   `json:"done"`
	Notes   []string   `json:"notes,omitempty"`
	Planned bool       `json:"planned,omitempty"`
}

// newApplyCommand is for campaigns that are kept in a file, under version control say. It may be
// repeated: applying the same file again changes nothing. A fault of the file exits with 2 and no
// call is made; a refusal of the server exits with 1. It is built on connected, not on talk, since
// the explanation of an error belongs behind the name of the campaign that it is about.
func newApplyCommand() *cobra.Command {
	var file string
	var dryRun bool
	cmd := connected(cli.WithOutput(&cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or change campaigns to match a file",
		Long: `Create or change campaigns to match a file; applying the file again changes nothing.
It is YAML or JSON: one campaign, a list, or several YAML documents, each as POST
/v1/campaigns takes it and with an id. "state" may be draft, published, paused or
ended. Absent and empty fields of an existing campaign stay as they are; its stock is
compared and never changed: see dibs campaign stock.`,
		Example: `  dibs campaign apply -f campaigns.yaml --dry-run`,
		Args:    cobra.NoArgs,
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

// readWanted reads all campaigns of a file before the first one is applied, so that a fault in the
// last one changes nothing. It refuses an unknown field, a missing or bad id and an id that comes
// twice: without an id, a second run would create a second campaign. The values are the server's to
// judge.
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
	// A campaign's number in the list tells a person where to look; it may have no id yet.
	for i, d := range documents {
		w := &list[i]
		if err := decodeStrictly(d, w); err != nil {
			return nil, cli.Usagef("%s, campaign %d: %w", file, i+1, err)
		}
		switch {
		case !dibs.IsID(w.ID):
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

// readDocuments reads YAML documents, of which JSON is a part, and flattens a list of campaigns one
// level deep. An empty document, as a --- at the end leaves behind, is no campaign.
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
		// Anything but a list is taken as a campaign, and decodeStrictly says what else it is.
		case d != nil:
			list = append(list, d)
		}
	}
}

// decodeStrictly decodes a document by its JSON names, and refuses unknown fields: a misspelt field
// would be left out and the default would apply in silence. It names every field that is wrong. It goes
// through JSON, so that a file and the API have the same names and forms of times and amounts.
func decodeStrictly(document any, into *wanted) error {
	raw, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("must be a campaign: %w", err)
	}
	err = decodeKnown(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	// The whole document is of another type: a text or a number.
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("must be a campaign, not %s", wrong.Value)
	}
	// The encoder's own form of the document: maps, lists, texts and numbers.
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	var value any
	if err := in.Decode(&value); err != nil {
		return err
	}
	faults := fieldFaults("", value, func(v any) any { return v })
	return errors.New(strings.Join(faults[:min(len(faults), dibs.MaxListedFaults)], "; "))
}

// decodeKnown decodes JSON, and refuses unknown fields.
func decodeKnown(raw []byte, into *wanted) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// fieldFaults returns what is wrong with the value at a place of a campaign, `/stock/units`, a fault for
// each of its parts that is wrong. document makes a campaign that has nothing but a value at this place.
func fieldFaults(at string, value any, document func(any) any) (faults []string) {
	takes := func(v any) bool {
		raw, err := json.Marshal(document(v))
		return err == nil && decodeKnown(raw, &wanted{}) == nil
	}
	if takes(value) {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			faults = append(faults, fieldFaults(at+"/"+name, v[name], func(x any) any { return document(map[string]any{name: x}) })...)
		}
	case []any:
		for i, member := range v {
			faults = append(faults, fieldFaults(fmt.Sprint(at, "/", i), member, func(x any) any { return document([]any{x}) })...)
		}
	}
	if len(faults) > 0 {
		return faults
	}
	for _, f := range forms {
		if takes(f.example) {
			return []string{place(at) + " must be " + f.words}
		}
	}
	return []string{place(at) + " is not a known field"}
}

// forms are what fields take, with a value of each. A text such as x is no time and no duration.
var forms = []struct {
	words   string
	example any
}{
	{"a string", "x"},
	{"a time such as 2026-12-01T04:00:00Z", "2026-12-01T04:00:00Z"},
	{"a duration such as 15m or 1h30m", "15m"},
	{"a whole number", 1},
	{"true or false", true},
	{"a list", []any{}},
	{"an amount such as {amount: 999, currency: CNY}", dibs.Money{Currency: "CNY"}},
	{"an object", map[string]any{}},
}

// apply applies the campaigns one after the other, in the order of the file, and stops at the first
// failure. It shows what was done before it: those campaigns stay as applied, since there is no
// transaction over several campaigns.
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
		t.Add(a.w.ID, a.state, cmp.Or(strings.Join(a.done, ", "), "unchanged"))
		// Notes go to the error output, and are in the JSON too.
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
