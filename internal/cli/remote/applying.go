package remote

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/internal/cli"

	"github.com/dibs-dev/dibs/api"
)

// applying takes one campaign to what is wanted.
type applying struct {
	admin *client.Client
	w     *wanted
	// dry records in done what would be done, and does nothing.
	dry   bool
	state dibs.State
	done  []string
	notes []string
}

// run creates the campaign or changes it, and then moves it to the wanted state. Every
// step may be repeated: after a failure the same file can be applied again.
func (a *applying) run(ctx context.Context) error {
	v, err := a.admin.Campaign(ctx, a.w.ID)
	switch {
	case errors.Is(err, dibs.ErrNotFound):
		err = a.do("created", func() error {
			_, err := a.admin.CreateCampaign(ctx, a.w.CampaignSpec, "")
			return err
		})
		a.state = dibs.Draft
	case err == nil:
		a.state = v.State
		err = a.change(ctx, &v)
	}
	if err != nil {
		return err
	}
	return a.move(ctx)
}

// do records a step, and takes it unless this is a dry run.
func (a *applying) do(what string, step func() error) error {
	a.done = append(a.done, what)
	if a.dry {
		return nil
	}
	return step()
}

// change patches what differs from the server's campaign.
func (a *applying) change(ctx context.Context, v *api.CampaignView) error {
	if a.w.Kind != v.Kind {
		return cli.Usagef("kind is %s on the server and cannot change", v.Kind)
	}
	if a.w.Shards != nil && *a.w.Shards != v.Shards {
		return cli.Usagef("shards is %d on the server and cannot change", v.Shards)
	}
	if have, want := stockCount(v.Stock), wantedCount(&a.w.Stock); have != want {
		a.notes = append(a.notes, fmt.Sprintf("the stock is %d on the server and %d in the file; it was not changed, see dibs campaign stock", have, want))
	}
	patch, fields := differences(&a.w.CampaignSpec, v)
	if len(fields) == 0 {
		return nil
	}
	return a.do("changed "+strings.Join(fields, " "), func() error {
		_, err := a.admin.PatchCampaign(ctx, a.w.ID, patch)
		return err
	})
}

// differences returns the patch that makes v as wanted, and the fields in it. A field
// that the file leaves out is no difference.
func differences(w *dibs.CampaignSpec, v *api.CampaignView) (p dibs.CampaignPatch, fields []string) {
	differ := func(field string, differs bool, set func()) {
		if differs {
			fields = append(fields, field)
			set()
		}
	}
	differ("title", w.Title != v.Title, func() { p.Title = &w.Title })
	differ("comment", w.Comment != "" && (v.Comment == nil || w.Comment != *v.Comment), func() { p.Comment = &w.Comment })
	differ("product_id", differing(w.ProductID, v.ProductID), func() { p.ProductID = w.ProductID })
	differ("starts_at", !sameMoment(w.StartsAt, v.StartsAt), func() { p.StartsAt = &w.StartsAt })
	differ("ends_at", !sameMoment(w.EndsAt, v.EndsAt), func() { p.EndsAt = &w.EndsAt })
	differ("limit_per_user", differing(w.Limit, &v.LimitPerUser), func() { p.Limit = w.Limit })
	differ("price", differing(w.Price, v.Price), func() { p.Price = w.Price })
	differ("tiers", w.Tiers != nil && !slices.Equal(w.Tiers, v.Tiers), func() { p.Tiers = w.Tiers })
	differ("pay_within", differing(w.PayWithin, v.PayWithin), func() { p.PayWithin = w.PayWithin })
	differ("late_payment", w.LatePayment != "" && w.LatePayment != v.LatePayment, func() { p.LatePayment = &w.LatePayment })
	differ("valid_for", differing(w.ValidFor, v.ValidFor), func() { p.ValidFor = w.ValidFor })
	differ("valid_until_at", w.ValidUntil != nil && (v.ValidUntil == nil || !sameMoment(*w.ValidUntil, *v.ValidUntil)),
		func() { p.ValidUntil = w.ValidUntil })
	differ("gate", w.Gate != nil && !reflect.DeepEqual(w.Gate, v.Gate), func() { p.Gate = w.Gate })
	differ("low_stock", w.LowStock != 0 && w.LowStock != v.LowStock, func() { p.LowStock = &w.LowStock })
	return p, fields
}

// differing reports whether a wanted value, nil for none, is not the server's.
func differing[T comparable](want, have *T) bool {
	return want != nil && (have == nil || *want != *have)
}

// sameMoment compares times as the server keeps them, in whole milliseconds.
func sameMoment(a, b time.Time) bool {
	return a.Truncate(time.Millisecond).Equal(b.Truncate(time.Millisecond))
}

// move takes the campaign to the wanted state.
func (a *applying) move(ctx context.Context) error {
	if a.w.State == "" || a.w.State == a.state {
		return nil
	}
	path, ok := paths[[2]dibs.State{a.state, a.w.State}]
	if !ok {
		return cli.Usagef("state is %s and cannot become %s", a.state, a.w.State)
	}
	for _, verb := range path {
		i := slices.IndexFunc(actions, func(x action) bool { return x.verb == verb })
		err := a.do(verb, func() error {
			_, err := actions[i].do(a.admin, ctx, a.w.ID)
			return err
		})
		if err != nil {
			return err
		}
	}
	a.state = a.w.State
	return nil
}

// paths are the actions that lead from one state to another.
var paths = map[[2]dibs.State][]string{
	{dibs.Draft, dibs.Published}:        {"publish"},
	{dibs.Draft, dibs.PausedState}:      {"publish", "pause"},
	{dibs.Published, dibs.PausedState}:  {"pause"},
	{dibs.Published, dibs.EndedState}:   {"end"},
	{dibs.PausedState, dibs.Published}:  {"resume"},
	{dibs.PausedState, dibs.EndedState}: {"end"},
}
