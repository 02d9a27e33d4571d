package enginetest_test

import (
	"testing"

	"github.com/dibs-dev/dibs/enginetest"
)

// faults are the bugs that a naive engine can be given: what the projects of
// the field got wrong, and the mistakes that this contract invites.
type faults struct {
	oneTooMany          bool // total >= sold
	racingLimit         bool // the limit is checked, then others are let in
	limitPerBatch       bool // a user's claims in flight do not count for each other
	limitBeforeStock    bool
	stockBeforeLimit    bool
	claimsUnbounded     bool // a user may make claims without end
	releasedUncounted   bool // a user may claim and cancel without end
	repeatGranted       bool // a repeated key is granted again
	racingRepeat        bool // only when repeats come at the same moment
	repeatForgotten     bool // a released claim's key is free again
	quantityIgnored     bool
	stateBeforeRepeat   bool // a lost yes is not found after the end
	releasedTwice       bool // stock comes back at each release
	allowanceKept       bool
	soldOutSticks       bool // the flag is never reset
	itemTwice           bool
	entryMissing        bool // stock taken, and no record of it
	seqGap              bool
	lostYes             bool // an answered entry is gone after a kill
	tailIgnored         bool // rebuilt from the ledger alone
	releaseCountedTwice bool // by the ledger and by the tail
	refTwice            bool
	refForgotten        bool // after a restart
	lostRestockKnown    bool // from the tail, although the ledger has lost it
	staleAccepted       bool // commands that a rebuild has counted
	olderAccepted       bool
	oneShardConfigured  bool
	endInclusive        bool
	lateRefused         bool // the window is asked about a late payer too
	payBySeconds        bool // the wrong unit
	cancelledYes        bool // success without effect
	falseNone           bool // granted, and answered with the effect none
	standsStill         bool // after 12,000 sales
	tornStats           bool
	trimsTooMuch        bool
	forgetsEnds         bool
	noSignal            bool

	// forgetful is no fault: answers get lost, with their effect or without,
	// and the error says so.
	forgetful bool
}

// Names of the checks that look at everything.
const (
	atRandom = "random/operations agree with the model"
	linear   = "linear/short histories of many clients are linearizable"
)

// planted lists every fault alone, with the checks that must notice it.
var planted = []struct {
	name   string
	faults faults
	by     []string
}{
	{"one too many", faults{oneTooMany: true}, []string{
		"stock/a restock reopens a sold-out shard at once",
		"crowd/the whole stock is granted, and no more",
		atRandom,
		linear,
	}},
	{"racing limit", faults{racingLimit: true}, []string{"crowd/one user gets the limit, and no more", linear}},
	{"limit per batch", faults{limitPerBatch: true}, []string{"crowd/one user gets the limit, and no more", linear}},
	{"stock before limit, of a red packet", faults{stockBeforeLimit: true}, []string{"refusals/of a red packet, the limit comes before sold out", atRandom}},
	{"limit before stock", faults{limitBeforeStock: true}, []string{"refusals/sold out comes before the limit", atRandom, linear}},
	{"claims unbounded", faults{claimsUnbounded: true}, []string{
		"bounds/a user who claims and cancels is refused after MaxClaimsPerUser claims",
		"bounds/many claims of one user at once end at MaxClaimsPerUser",
		"bounds/a user with more claims than MaxClaimsPerUser is loaded, and refused more",
		atRandom,
	}},
	{"released claims uncounted", faults{releasedUncounted: true}, []string{
		"bounds/a user who claims and cancels is refused after MaxClaimsPerUser claims",
		"bounds/a user with more claims than MaxClaimsPerUser is loaded, and refused more",
		atRandom,
	}},
	{"repeat granted", faults{repeatGranted: true}, []string{"repeats/a repeated key returns the first result", atRandom, linear}},
	{"racing repeat", faults{racingRepeat: true}, []string{"crowd/one key is granted once", linear}},
	{"repeat forgotten", faults{repeatForgotten: true}, []string{"repeats/after a release too", atRandom, linear}},
	{"quantity ignored", faults{quantityIgnored: true}, []string{"repeats/the same key with another quantity is refused", atRandom, linear}},
	{"state before repeat", faults{stateBeforeRepeat: true}, []string{"repeats/whatever state, window and stock are by then", atRandom}},
	{"released twice", faults{releasedTwice: true}, []string{"releases/happen once", "crowd/releases conserve the stock", atRandom, linear}},
	{"allowance kept", faults{allowanceKept: true}, []string{"releases/give stock and allowance back", atRandom, linear}},
	{"sold out sticks", faults{soldOutSticks: true}, []string{
		"releases/reopen a sold-out shard at once",
		"stock/a restock reopens a sold-out shard at once",
		atRandom,
		linear,
	}},
	{"item twice", faults{itemTwice: true}, []string{
		"items/each is granted once, in order, by its value",
		"crowd/each item finds one holder",
		atRandom,
	}},
	{"entry missing", faults{entryMissing: true}, []string{
		"grants/every grant is one journal entry, without gaps",
		"restarts/a yes under load is kept by a kill",
		"crowd/the whole stock is granted, and no more",
		atRandom,
	}},
	{"seq gap", faults{seqGap: true}, []string{"crowd/the whole stock is granted, and no more", atRandom, linear}},
	{"lost yes", faults{lostYes: true}, []string{"restarts/a yes under load is kept by a kill", atRandom}},
	{"tail ignored", faults{tailIgnored: true}, []string{"restarts/the state before comes back, wherever the ledger stands", atRandom}},
	{"release counted twice", faults{releaseCountedTwice: true}, []string{"restarts/what the ledger released before is counted once", atRandom}},
	{"ref twice", faults{refTwice: true}, []string{"stock/a repeated ref changes nothing", atRandom}},
	{"ref forgotten", faults{refForgotten: true}, []string{"stock/a repeated ref changes nothing after a restart", atRandom}},
	{"lost restock known", faults{lostRestockKnown: true}, []string{
		"stock/a restock that the ledger has lost counts when it is sent again",
	}},
	{"stale accepted", faults{staleAccepted: true}, []string{
		"releases/of an older epoch are stale",
		"stock/a restock of an older epoch is stale",
		atRandom,
	}},
	{"older accepted", faults{olderAccepted: true}, []string{"configure/an older version changes nothing", atRandom}},
	{"one shard configured", faults{oneShardConfigured: true}, []string{"configure/reaches all shards"}},
	{"end inclusive", faults{endInclusive: true}, []string{"windows/starts_at is inclusive, ends_at exclusive"}},
	{"late refused", faults{lateRefused: true}, []string{"windows/a late payer is refused by stock and limit alone"}},
	{"pay by in seconds", faults{payBySeconds: true}, []string{"grants/pay_by is the time to pay after the grant", atRandom}},
	{"cancelled yes", faults{cancelledYes: true}, []string{"closing/a cancelled request has no lost effect"}},
	{"false none", faults{falseNone: true}, []string{"crowd/the whole stock is granted, and no more"}},
	{"stands still", faults{standsStill: true}, []string{"crowd/it does not stop selling"}},
	{"torn stats", faults{tornStats: true}, []string{"crowd/releases conserve the stock", linear}},
	{"forgets where a journal ended", faults{forgetsEnds: true}, []string{"journal/the end is known when everything is trimmed"}},
	{"trims too much", faults{trimsTooMuch: true}, []string{"journal/trimming drops what is settled and keeps what is above", atRandom}},
	{"no signal", faults{noSignal: true}, []string{"journal/appended is signalled"}},
}

// checkNamed returns the check of a name.
func checkNamed(t *testing.T, name string) enginetest.Check {
	for _, c := range enginetest.Checks() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no check %q", name)
	return enginetest.Check{}
}

// attempts is how often a check may look for a fault that shows only when
// goroutines happen to meet, or when random operations happen upon it.
const attempts = 50

// TestPlanted expects that each planted fault is caught, by each check that is
// meant for it.
func TestPlanted(t *testing.T) {
	// Few runs: what is planted shows early.
	t.Setenv("ENGINETEST_RUNS", "4")
	for _, p := range planted {
		for _, name := range p.by {
			t.Run(p.name+"/"+name, func(t *testing.T) {
				c := checkNamed(t, name)
				for range attempts {
					if err := c.Run(t, naiveFactory(p.faults)); err != nil {
						t.Logf("caught: %v", err)
						return
					}
				}
				t.Error("the check does not notice")
			})
		}
	}
}

// TestForgetful runs the histories on an engine that loses answers: those are
// no fault. With a fault beside it, the histories are still told apart.
func TestForgetful(t *testing.T) {
	// Each lost answer multiplies the orders to search.
	t.Setenv("ENGINETEST_HISTORIES", "20")
	c := checkNamed(t, linear)
	if err := c.Run(t, naiveFactory(faults{forgetful: true})); err != nil {
		t.Error(err)
	}
	if err := c.Run(t, naiveFactory(faults{forgetful: true, oneTooMany: true})); err == nil {
		t.Error("an engine that oversells passes, since it loses answers")
	}
}
