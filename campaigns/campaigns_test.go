package campaigns_test

import (
	"context"
	"testing"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/leaks"
	"github.com/dibs-dev/dibs/internal/testnode"
	"github.com/dibs-dev/dibs/node"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestStatesMoveByActionsOnly(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	s := r.Node.Service
	type action func(context.Context, string) (*dibs.Campaign, error)
	actions := map[string]action{"publish": s.Campaigns.Publish, "pause": s.Campaigns.Pause, "resume": s.Campaigns.Resume, "end": s.Campaigns.End}
	for _, c := range []struct {
		path    []string
		allowed map[string]dibs.State
	}{
		{nil, map[string]dibs.State{"publish": dibs.Published}},
		{[]string{"publish"}, map[string]dibs.State{
			"publish": dibs.Published, "pause": dibs.PausedState, "resume": dibs.Published, "end": dibs.EndedState,
		}},
		{[]string{"publish", "pause"}, map[string]dibs.State{
			"pause": dibs.PausedState, "resume": dibs.Published, "end": dibs.EndedState,
		}},
		{[]string{"publish", "end"}, map[string]dibs.State{"end": dibs.EndedState}},
	} {
		for name, act := range actions {
			spec := r.Sale("", 1)
			spec.Title = name
			made, err := s.Campaigns.Create(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range c.path {
				if _, err := actions[step](t.Context(), made.ID); err != nil {
					t.Fatal(err)
				}
			}
			got, err := act(t.Context(), made.ID)
			want, ok := c.allowed[name]
			switch {
			case !ok:
				r.Fails(err, dibs.InvalidState)
			case err != nil || got.State != want:
				t.Errorf("%s after %v: %v, %v; want %s", name, c.path, got, err, want)
			}
		}
	}
	for name, act := range actions {
		if _, err := act(t.Context(), "nothing"); err == nil {
			t.Errorf("%s of nothing went through", name)
		}
	}
}

func TestWhatMayChangeAfterPublishing(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 10))
	patch := func(p dibs.CampaignPatch) error {
		_, err := r.Node.Campaigns.Patch(t.Context(), "phone", p)
		return err
	}
	two, one, title, early, product := int64(2), int64(1), "Phones", r.Now().Add(-time.Hour), "p"
	price, pay, late := dibs.Money{Amount: 1, Currency: "CNY"}, dibs.Duration(time.Minute), dibs.RefundDue
	for _, c := range []struct {
		p      dibs.CampaignPatch
		faults int
		reason dibs.Reason
	}{
		{dibs.CampaignPatch{Title: &title, Comment: &title, Limit: &two}, 0, dibs.Granted},
		{dibs.CampaignPatch{Limit: &one}, 1, dibs.InvalidState},
		{dibs.CampaignPatch{StartsAt: &early, Price: &price, PayWithin: &pay, LatePayment: &late, ProductID: &product}, 5, dibs.InvalidState},
		{dibs.CampaignPatch{EndsAt: &early}, 1, dibs.InvalidRequest},
		{dibs.CampaignPatch{Title: new(string)}, 1, dibs.InvalidRequest},
	} {
		err := patch(c.p)
		if c.faults == 0 && err != nil {
			t.Fatal(err)
		}
		if c.faults > 0 {
			if e := r.Fails(err, c.reason); len(e.Faults) != c.faults {
				t.Errorf("%v, want %d faults", err, c.faults)
			}
		}
	}
	// The raised limit and a moved end are obeyed at once.
	if res := r.Claim("phone", "42", "", 2); res.Outcome != dibs.Granted {
		t.Fatalf("2 with a limit of 2: %s", res.Outcome)
	}
	soon := r.Now().Add(time.Second)
	if err := patch(dibs.CampaignPatch{EndsAt: &soon}); err != nil {
		t.Fatal(err)
	}
	r.Pass(time.Minute)
	r.Wants(dibs.Ended, "phone", "43", "")
	r.Reopen()
	r.Wants(dibs.Ended, "phone", "43", "")
	later := r.Now().Add(time.Hour)
	if err := patch(dibs.CampaignPatch{EndsAt: &later}); err != nil {
		t.Fatal(err)
	}
	r.Wants(dibs.Granted, "phone", "43", "")
	r.Wants(dibs.LimitReached, "phone", "42", "")
	r.Verify()
}

// A campaign without a price takes its product's at publishing, and keeps it.
func TestThePriceIsFixedAtPublishing(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	s, id := r.Node.Service, "phone"
	cheap, dear := dibs.Money{Amount: 100, Currency: "CNY"}, dibs.Money{Amount: 999, Currency: "CNY"}
	spec := r.Sale("sale", 10)
	spec.ProductID, spec.Limit = &id, new(int64)
	*spec.Limit = 3
	_, err := s.Campaigns.Create(t.Context(), spec)
	if e := r.Fails(err, dibs.InvalidRequest); e.Faults[0].Field != "/product_id" {
		t.Fatal(err)
	}
	if _, err := s.Products.Create(t.Context(), dibs.ProductSpec{ID: id, Name: "Phone", Price: &cheap}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Products.Create(t.Context(), dibs.ProductSpec{ID: id, Name: "Phone"})
	r.Fails(err, dibs.AlreadyExists)
	r.Publish(spec)
	_, err = s.Campaigns.Create(t.Context(), spec)
	r.Fails(err, dibs.AlreadyExists)
	if _, err := s.Products.Patch(t.Context(), id, dibs.ProductPatch{Price: &dear}); err != nil {
		t.Fatal(err)
	}
	got := r.Claim("sale", "42", "", 3).Claim
	if got.Amount == nil || *got.Amount != (dibs.Money{Amount: 300, Currency: "CNY"}) {
		t.Fatalf("3 at 100 cost %+v", got.Amount)
	}
	list, err := s.Claims.OfCampaign(t.Context(), "sale", dibs.ClaimFilter{}, dibs.Page{})
	if err != nil || len(list.Items) != 1 || *list.Items[0].Amount != *got.Amount {
		t.Fatalf("the ledger has %+v, %v", list.Items, err)
	}
}

// A claim that has to be paid starts pending, with a deadline that the ledger shares.
func TestASaleWithTimeToPayStartsPending(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	spec := r.Sale("phone", 10)
	within := dibs.Duration(15 * time.Minute)
	spec.PayWithin = &within
	r.Publish(spec)
	got := r.Wants(dibs.Granted, "phone", "42", "k").Claim
	if got.Status != dibs.Pending || !got.PayBy.Equal(got.CreatedAt.Add(15*time.Minute)) {
		t.Fatalf("%+v", got)
	}
	list, err := r.Node.Claims.OfCampaign(t.Context(), "phone", dibs.ClaimFilter{}, dibs.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Status != dibs.Pending || !list.Items[0].PayBy.Equal(got.PayBy) {
		t.Fatalf("the ledger has %+v, %v", list.Items, err)
	}
	if st := r.Stats("phone"); st.Pending != 1 || st.Confirmed != 0 || st.Granted != 1 {
		t.Fatalf("%+v", st)
	}
}

// A change that was made of another version changes nothing, and says which one there is.
func TestAChangeOfAnotherVersion(t *testing.T) {
	r := testnode.New(t, node.ServiceConfig{})
	r.Publish(r.Sale("phone", 10))
	c, err := r.Node.Campaigns.Now(t.Context(), "phone")
	if err != nil {
		t.Fatal(err)
	}
	first, second, mine := "First", "Second", c.Version
	changed, err := r.Node.Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{Title: &first, Version: &mine})
	if err != nil || changed.Version <= mine {
		t.Fatalf("%+v, %v", changed, err)
	}
	_, err = r.Node.Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{Title: &second, Version: &mine})
	if e := r.Fails(err, dibs.InvalidState); len(e.Faults) != 1 || e.Faults[0].Field != "/version" {
		t.Errorf("%+v", e)
	}
	if c, err = r.Node.Campaigns.Now(t.Context(), "phone"); err != nil || c.Title != first {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err = r.Node.Campaigns.Patch(t.Context(), "phone", dibs.CampaignPatch{Title: &second, Version: &changed.Version}); err != nil {
		t.Error(err)
	}
}
