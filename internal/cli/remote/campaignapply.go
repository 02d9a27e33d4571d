package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"

	"github.com/dibs-dev/dibs/internal/cli"
)

// wanted is a campaign as a file describes it: what POST /v1/campaigns takes,
// and the state that it should be in.
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

func newApplyCommand() *cobra.Command {
	var output, file string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create or change campaigns so that they are as a file says",
		Long: `Create or change campaigns so that they are as a file says; applying it again
changes nothing. The file is YAML or JSON: one campaign, a list, or several YAML
documents, each as POST /v1/campaigns takes it and with an id. "state" may be
draft, published, paused or ended. Fields that are absent stay as they are. The
stock of a campaign that exists is compared and never changed: see dibs campaign
stock.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := readWanted(cmd, file)
			if err != nil {
				return err
			}
			return apply(cmd, list, output, dryRun)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "The `FILE` to apply, - for the standard input")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "Say what would be done, and do nothing")
	return addCall(cmd, &output)
}

// readWanted reads all campaigns of a file before any is applied.
func readWanted(cmd *cobra.Command, file string) ([]wanted, error) {
	in := cmd.InOrStdin()
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
		if err := strictly(d, w); err != nil {
			return nil, cli.Usagef("%s, campaign %d: %w", file, i+1, err)
		}
		switch {
		case !dibs.ValidID(w.ID):
			return nil, cli.Usagef("%s, campaign %d: id is required, 1-64 characters of A-Z a-z 0-9 . _ -", file, i+1)
		case seen[w.ID]:
			return nil, cli.Usagef("%s: campaign %s is there twice", file, w.ID)
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

// strictly decodes a document and refuses fields that there are not.
func strictly(document any, into *wanted) error {
	raw, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("must be a campaign: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// apply makes the campaigns as wanted, one after the other.
func apply(cmd *cobra.Command, list []wanted, output string, dryRun bool) error {
	c, api, err := Connect(cmd)
	if err != nil {
		return err
	}
	t := cli.Table{Head: []string{"ID", "STATE", "DONE"}}
	if dryRun {
		t.Head[2] = "WOULD BE DONE"
	}
	var results []applied
	var failed error
	for i := range list {
		a := applying{api: api, w: &list[i], dry: dryRun}
		if err := a.run(cmd.Context()); err != nil {
			failed = fmt.Errorf("campaign %s: %w", a.w.ID, ExplainCall(c, err))
			break
		}
		done := strings.Join(a.done, ", ")
		if done == "" {
			done = "unchanged"
		}
		t.Add(a.w.ID, string(a.state), done)
		for _, note := range a.notes {
			cmd.PrintErrf("note: campaign %s: %s\n", a.w.ID, note)
		}
		results = append(results, applied{ID: a.w.ID, State: a.state, Done: append([]string{}, a.done...), Notes: a.notes, Planned: dryRun})
	}
	if len(results) > 0 {
		failed = errors.Join(failed, cli.Show(cmd, output, results, &t))
	}
	return failed
}

// applying is one campaign on its way to what is wanted.
type applying struct {
	api   *client.Client
	w     *wanted
	dry   bool
	state dibs.State
	done  []string
	notes []string
}

func (a *applying) run(ctx context.Context) error {
	v, err := a.api.Campaign(ctx, a.w.ID)
	switch {
	case errors.Is(err, dibs.ErrNotFound):
		a.done = append(a.done, "created")
		a.state = dibs.Draft
		if !a.dry {
			_, err = a.api.CreateCampaign(ctx, a.w.CampaignSpec, "")
		} else {
			err = nil
		}
	case err == nil:
		a.state = v.State
		err = a.change(ctx, &v)
	}
	if err != nil {
		return err
	}
	return a.move(ctx)
}

// change patches what differs.
func (a *applying) change(ctx context.Context, v *dibs.CampaignView) error {
	if a.w.Kind != v.Kind {
		return cli.Usagef("kind is %s on the server and cannot change", v.Kind)
	}
	if a.w.Shards != nil && *a.w.Shards != v.Shards {
		return cli.Usagef("shards is %d on the server and cannot change", v.Shards)
	}
	if have, want := stockCount(v.Stock), wantedStock(&a.w.Stock); have != want {
		a.notes = append(a.notes, fmt.Sprintf("the stock is %d on the server and %d in the file; it was not changed, see dibs campaign stock", have, want))
	}
	patch, fields := differences(&a.w.CampaignSpec, v)
	if len(fields) == 0 {
		return nil
	}
	a.done = append(a.done, "changed "+strings.Join(fields, " "))
	if a.dry {
		return nil
	}
	_, err := a.api.PatchCampaign(ctx, a.w.ID, patch)
	return err
}

// differences is the patch that makes v as wanted, with the fields in it.
func differences(w *dibs.CampaignSpec, v *dibs.CampaignView) (p dibs.CampaignPatch, fields []string) {
	differ := func(field string, differs bool, set func()) {
		if differs {
			fields = append(fields, field)
			set()
		}
	}
	differ("title", w.Title != v.Title, func() { p.Title = &w.Title })
	differ("comment", w.Comment != "" && (v.Comment == nil || w.Comment != *v.Comment), func() { p.Comment = &w.Comment })
	differ("product_id", w.ProductID != nil && (v.ProductID == nil || *w.ProductID != *v.ProductID), func() { p.ProductID = w.ProductID })
	differ("starts_at", !sameMoment(w.StartsAt, v.StartsAt), func() { p.StartsAt = &w.StartsAt })
	differ("ends_at", !sameMoment(w.EndsAt, v.EndsAt), func() { p.EndsAt = &w.EndsAt })
	differ("limit_per_user", w.Limit != nil && *w.Limit != v.LimitPerUser, func() { p.Limit = w.Limit })
	differ("price", w.Price != nil && (v.Price == nil || *w.Price != *v.Price), func() { p.Price = w.Price })
	differ("tiers", w.Tiers != nil && !slices.Equal(w.Tiers, v.Tiers), func() { p.Tiers = w.Tiers })
	differ("pay_within", w.PayWithin != nil && (v.PayWithin == nil || *w.PayWithin != *v.PayWithin), func() { p.PayWithin = w.PayWithin })
	differ("late_payment", w.LatePayment != "" && w.LatePayment != v.LatePayment, func() { p.LatePayment = &w.LatePayment })
	differ("valid_for", w.ValidFor != nil && (v.ValidFor == nil || *w.ValidFor != *v.ValidFor), func() { p.ValidFor = w.ValidFor })
	differ("valid_until_at", w.ValidUntil != nil && (v.ValidUntil == nil || !sameMoment(*w.ValidUntil, *v.ValidUntil)),
		func() { p.ValidUntil = w.ValidUntil })
	differ("gate", w.Gate != nil && !reflect.DeepEqual(w.Gate, v.Gate), func() { p.Gate = w.Gate })
	differ("low_stock", w.LowStock != 0 && w.LowStock != v.LowStock, func() { p.LowStock = &w.LowStock })
	return p, fields
}

// sameMoment compares times as the server keeps them.
func sameMoment(a, b time.Time) bool {
	return a.Truncate(time.Millisecond).Equal(b.Truncate(time.Millisecond))
}

func stockCount(s *dibs.StockView) int64 {
	switch {
	case s == nil:
		return 0
	case s.Units != nil:
		return *s.Units
	case s.Items != nil:
		return *s.Items
	case s.Codes != nil:
		return s.Codes.Count
	case s.RedPacket != nil:
		return s.RedPacket.Count
	}
	return 0
}

func wantedStock(s *dibs.StockSpec) int64 {
	switch {
	case s.Units != nil:
		return *s.Units
	case s.Codes != nil:
		return s.Codes.Count
	case s.RedPacket != nil:
		return s.RedPacket.Count
	}
	return int64(len(s.Items))
}

// move takes the campaign to the wanted state.
func (a *applying) move(ctx context.Context) error {
	path, ok := ways[[2]dibs.State{a.state, a.w.State}]
	if a.w.State == "" || a.w.State == a.state {
		return nil
	}
	if !ok {
		return cli.Usagef("state is %s and cannot become %s", a.state, a.w.State)
	}
	for _, verb := range path {
		a.done = append(a.done, verb)
		for _, act := range actions {
			if act.verb != verb || a.dry {
				continue
			}
			if _, err := act.do(a.api, ctx, a.w.ID); err != nil {
				return err
			}
		}
	}
	a.state = a.w.State
	return nil
}

// ways are the actions that lead from one state to another.
var ways = map[[2]dibs.State][]string{
	{dibs.Draft, dibs.Published}:        {"publish"},
	{dibs.Draft, dibs.PausedState}:      {"publish", "pause"},
	{dibs.Published, dibs.PausedState}:  {"pause"},
	{dibs.Published, dibs.EndedState}:   {"end"},
	{dibs.PausedState, dibs.Published}:  {"resume"},
	{dibs.PausedState, dibs.EndedState}: {"end"},
}
