package enginetest_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/dibs-dev/dibs/engine/enginetest"
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
	releasedElsewhere   bool // to the other shards too
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
	takenAgain          bool // by the tail, after the load
	anyEpoch            bool // for withdrawals
	arrivalUncounted    bool // a transfer that came
	movedForgotten      bool // transfers that were settled, after a restart
	tailMoveForgotten   bool // transfers of the journal's tail
	lostRestockKnown    bool // from the tail, although the ledger has lost it
	staleAccepted       bool // commands that a rebuild has counted
	olderAccepted       bool
	oneShardConfigured  bool
	endInclusive        bool
	lateRefused         bool // the window is asked about a late payer too
	strangersServed     bool // users who were never on the shard
	releasedUnknown     bool // a user is forgotten with what they gave back
	shardsUnchecked     bool // claims come by another number of shards
	payBySeconds        bool // the wrong unit
	cancelledYes        bool // success without effect
	falseNone           bool // granted, and answered with the effect none
	standsStill         bool // after 12,000 sales
	tornStats           bool
	trimsTooMuch        bool
	forgetsEnds         bool
	noSignal            bool
	referenceForgotten  bool // the journal has the claim alone
	statsStill          bool // what is decided is not counted
	settingTwice        bool // one setting is named twice
	takenTwice          bool // a value is given to two
	productIgnored      bool // each campaign counts for itself
	racingProduct       bool // others are let in after the count
	retiredForgotten    bool // what left the engine counts no more
	uncountedGranted    bool // before all campaigns are counted
	reopenedTwice       bool // a campaign that is opened again counts twice

	// forgetful is no fault: answers get lost, with their effect or without,
	// and the error says so.
	forgetful bool
}

// Names of the checks that look at everything.
const (
	atRandom = "random/operations agree with the model"
	linear   = "linear/short histories of many clients are linearizable"
	// knownAlone is of claims that look for a user on a shard of before.
	knownAlone = "shards/a shard of before serves the users that it knows, and no others"
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
	{"arrival uncounted", faults{arrivalUncounted: true}, []string{"transfers/what is left and what has moved add up"}},
	{"moved forgotten", faults{movedForgotten: true}, []string{"transfers/what has moved is known after a restart"}},
	{"tail move forgotten", faults{tailMoveForgotten: true}, []string{"transfers/what has moved is known after a restart"}},
	{"taken again", faults{takenAgain: true}, []string{"stock/a withdrawal that was settled ahead is taken once"}},
	{"any epoch", faults{anyEpoch: true}, []string{"stock/a withdrawal may count in one epoch alone"}},
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
	{"strangers served", faults{strangersServed: true}, []string{knownAlone}},
	{"released unknown", faults{releasedUnknown: true}, []string{knownAlone}},
	{"shards unchecked", faults{shardsUnchecked: true}, []string{knownAlone}},
	{"late refused", faults{lateRefused: true}, []string{"windows/a late payer is refused by stock and limit alone"}},
	{"pay by in seconds", faults{payBySeconds: true}, []string{"grants/pay_by is the time to pay after the grant", atRandom}},
	{"cancelled yes", faults{cancelledYes: true}, []string{"closing/a cancelled request has no lost effect"}},
	{"false none", faults{falseNone: true}, []string{"crowd/the whole stock is granted, and no more"}},
	{"stands still", faults{standsStill: true}, []string{"crowd/it does not stop selling"}},
	{"torn stats", faults{tornStats: true}, []string{"crowd/releases conserve the stock", linear}},
	{"forgets where a journal ended", faults{forgetsEnds: true}, []string{"journal/the end is known when everything is trimmed"}},
	{"trims too much", faults{trimsTooMuch: true}, []string{"journal/trimming drops what is settled and keeps what is above", atRandom}},
	{"stats stand still", faults{statsStill: true}, []string{"abilities/the stats count what was decided"}},
	{"a setting twice", faults{settingTwice: true}, []string{"abilities/the level names each setting once"}},
	{"taken twice", faults{takenTwice: true}, []string{"abilities/the store gives a value once"}},
	{"reference forgotten", faults{referenceForgotten: true}, []string{"journal/a grant keeps its reference", atRandom}},
	{"product ignored", faults{productIgnored: true}, []string{"products/campaigns of a product share its limit", "products/the limit holds on each shard"}},
	{"racing product", faults{racingProduct: true}, []string{"products/users who claim everywhere at once get the limit"}},
	{"retired forgotten", faults{retiredForgotten: true}, []string{"products/a campaign that left the engine counts"}},
	{"uncounted granted", faults{uncountedGranted: true}, []string{"products/nothing is granted until all campaigns are counted"}},
	{"opened again, counted twice", faults{reopenedTwice: true}, []string{"products/a campaign that is opened again counts once"}},
	{"room kept", faults{allowanceKept: true}, []string{"products/a released unit gives its room back"}},
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
						if line := lineOf(t, err); line == "check(r)" {
							t.Error("the failure names the line that runs the check, and not one of the check")
						}
						return
					}
				}
				t.Error("the check does not notice")
			})
		}
	}
}

// lineOf is the line of this package that a failure names.
func lineOf(t *testing.T, failure error) string {
	t.Helper()
	at := strings.SplitN(failure.Error(), ":", 3)
	text, err := os.ReadFile(at[0])
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(at[1])
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.Split(string(text), "\n")[number-1])
}

// TestPlantedElsewhere expects that a fault which only shows on other shards is caught where
// campaigns have several, and that it shows nowhere else.
func TestPlantedElsewhere(t *testing.T) {
	t.Setenv("ENGINETEST_RUNS", "4")
	for _, name := range []string{"releases/give stock and allowance back", "releases/happen once", atRandom} {
		f, c := naiveFactory(faults{releasedElsewhere: true}), checkNamed(t, name)
		if err := c.Run(t, f); err != nil {
			t.Errorf("%s, with one shard: %v", name, err)
		}
		f.Shards = 5
		if err := c.Run(t, f); err == nil {
			t.Errorf("%s does not notice what is given back to other shards", name)
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
