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

// applying takes one campaign to what is wanted, by several calls. One goroutine uses it, once. It
// reads the campaign first and changes what differs: when another administrator changes the same
// fields in between, the later change stays.
type applying struct {
	admin *client.Client
	w     *wanted
	// dry records in done what would be done, and does nothing. The server judges nothing
	// then, so a dry run cannot promise that the steps will be accepted.
	dry   bool
	state dibs.State
	done  []string
	notes []string
}

// run creates the campaign or changes it, and then moves it to the wanted state. The fields come
// first, so that a campaign is never published with fields of before. Every step may be repeated:
// after a failure the same file can be applied again and continues where it stopped.
func (a *applying) run(ctx context.Context) error {
	v, err := a.admin.Campaigns.Get(ctx, a.w.ID)
	switch {
	// No idempotency key: the id is one already. Another client that creates the campaign in
	// between makes this call fail, and a repeat then changes that campaign.
	case errors.Is(err, dibs.ErrNotFound):
		err = a.do("created", func() error {
			_, err := a.admin.Campaigns.Create(ctx, a.w.CampaignSpec, "")
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

// change patches what differs from the server's campaign, in one call; what the file leaves out stays.
// It refuses another kind, which no campaign can change. It compares only the size of the stock,
// and notes a difference: stock changes by steps that are recorded, and a file that is applied twice
// must not add it twice. The server judges which fields a published campaign may still change.
func (a *applying) change(ctx context.Context, v *api.CampaignView) error {
	if a.w.Kind != "" && a.w.Kind != v.Kind {
		return cli.Usagef("kind is %s on the server and cannot change", v.Kind)
	}
	stock := &a.w.Stock
	given := stock.Units != nil || stock.Items != nil || stock.Codes != nil || stock.RedPacket != nil
	if have, want := stockCount(v.Stock), wantedCount(stock); given && have != want {
		a.notes = append(a.notes, fmt.Sprintf("the stock is %d on the server and %d in the file; it was not changed, see dibs campaign stock", have, want))
	}
	patch, fields := differences(&a.w.CampaignSpec, v)
	if len(fields) == 0 {
		return nil
	}
	return a.do("changed "+strings.Join(fields, " "), func() error {
		_, err := a.admin.Campaigns.Patch(ctx, a.w.ID, patch)
		return err
	})
}

// differences returns the patch that makes v as wanted, and the names of the fields in it: every field
// that a patch has is compared by its name in JSON. A field that the file leaves out is no difference,
// and so a file cannot empty a field. The stock is not compared: it changes by steps of its own.
func differences(w *dibs.CampaignSpec, v *api.CampaignView) (p dibs.CampaignPatch, fields []string) {
	wanted, have := byName(reflect.ValueOf(*w)), byName(reflect.ValueOf(*v))
	for _, f := range reflect.VisibleFields(reflect.TypeFor[dibs.CampaignPatch]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want, there := wanted[name]
		if !there || name == "stock" || reflect.DeepEqual(asKept(want), asKept(have[name])) {
			continue
		}
		fields = append(fields, name)
		if to := reflect.ValueOf(&p).Elem().FieldByIndex(f.Index); to.Kind() == want.Kind() {
			to.Set(want)
		} else {
			to.Set(reflect.New(want.Type()))
			to.Elem().Set(want)
		}
	}
	return p, fields
}

// byName returns the fields of a struct by their names in JSON, without those that are absent or empty.
func byName(of reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for _, f := range reflect.VisibleFields(of.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if value := of.FieldByIndex(f.Index); !isEmpty(value) {
			fields[name] = value
		}
	}
	return fields
}

// isEmpty reports whether a field says nothing: a limit of 0 does, an empty text or duration does not.
func isEmpty(field reflect.Value) bool {
	if field.IsZero() {
		return true
	}
	to := reflect.Indirect(field)
	switch to.Interface().(type) {
	case int, int64:
		return false
	}
	return to.IsZero()
}

// asKept returns a field as the server keeps it: times in whole milliseconds, an empty list and an
// absent field as nil.
func asKept(field reflect.Value) any {
	if !field.IsValid() || field.Kind() == reflect.Slice && field.Len() == 0 {
		return nil
	}
	value := reflect.Indirect(field).Interface()
	if at, ok := value.(time.Time); ok {
		return at.UnixMilli()
	}
	return value
}

// move takes the campaign to the wanted state by the verbs that a person would use, so that the
// admin log shows the same actions. It refuses a way that paths does not have, such as from ended.
func (a *applying) move(ctx context.Context) error {
	if a.w.State == "" || a.w.State == a.state {
		return nil
	}
	path, ok := paths[[2]dibs.State{a.state, a.w.State}]
	if !ok {
		return cli.Usagef("state is %s and cannot become %s", a.state, a.w.State)
	}
	for _, verb := range path {
		// paths has verbs of actions only, so it is always found.
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

// paths are the actions that lead from one state to another. No way leads back to a draft or out of
// ended. Each action is a call of its own: a failure leaves the campaign in a state between.
var paths = map[[2]dibs.State][]string{
	{dibs.Draft, dibs.Published}:        {"publish"},
	{dibs.Draft, dibs.PausedState}:      {"publish", "pause"},
	{dibs.Published, dibs.PausedState}:  {"pause"},
	{dibs.Published, dibs.EndedState}:   {"end"},
	{dibs.PausedState, dibs.Published}:  {"resume"},
	{dibs.PausedState, dibs.EndedState}: {"end"},
}
