// Package dibs decides who gets things that run out: flash sales, coupons and red
// packets. A million people ask at once; each is answered at once and for good,
// granted or why not. The engine decides, the journal remembers, the ledger keeps.
//
// # Basics
//
// A [Campaign] is one limited offer: a kind, a window, a [Stock], a limit per
// user, and a [State] that only actions change. A [ClaimRequest] asks for units
// of it. The answer is a [Result] whose Outcome is [Granted] or the [Reason] of
// the refusal; a granted [Claim] is the lasting record.
//
// This package is the vocabulary and the contracts: [Engine] decides claims in one
// atomic step each, [Journal] remembers them, and package ledger says what the SQL
// database keeps. Package node puts all of it to work: in one folder with nothing
// installed, or, by two addresses, on Redis and a database for many processes:
//
//	n, err := node.Open(ctx, node.Config{Dir: "dibs-data", Migrate: true})
//	...
//	defer n.Close(ctx)
//	res, err := n.Claims.Claim(ctx, dibs.ClaimRequest{
//		CampaignID: "phone-noon", UserID: "42", Key: "press-1",
//	})
//	switch {
//	case err != nil:                      // not decided: see the caveats
//	case res.Outcome == dibs.Granted:     // res.Claim is theirs, and durable
//	case res.Outcome == dibs.SoldOut:     // res.Remaining are left
//	}
//
// A campaign begins as a draft by n.Campaigns.Create and grants after
// n.Campaigns.Publish, inside its window. Pause, Resume and End stop it and let it go
// on; ChangeStock restocks it or withdraws from it. n.Audit.Verify compares the engine
// with the ledger, promise by promise.
//
// A grant is durable in the engine's [Journal] before it is answered. Settling
// moves the journal into the ledger behind the answer, in order, in batches,
// and exactly once. Reads by users find a claim at once, settled or not.
//
// The HTTP API is package httpapi, its Go client package client, and the
// program with both is cmd/dibs. Package enginetest and package ledgertest are
// the contracts of engines and ledgers as tests, for those who write another.
//
// # Caveats
//
// A refusal is a [Result] and no error. An error of Claim is an
// [*Error] that says what is wrong with the request, or that it could not be
// decided: [Unavailable] or [Overloaded], with an [Effect]. EffectNone means
// that nothing was granted. EffectUnknown means that this call may have granted a
// claim, or that an earlier one with the same Key may have, which was not looked up.
// Call again with the same Key: the first result is returned. Without a Key a lost
// answer cannot be asked for again, and a repeat is a new request.
//
// A Key belongs to a user and a campaign. A repeat is recognised before state,
// window and stock are looked at, and as long as the claim exists. Refusals are
// not remembered: a repeated key may be granted later.
//
// Windows are judged by the engine's clock, which for the embedded engine is
// that of its process. Times are cut to milliseconds.
//
// The embedded engine keeps the claims of its live campaigns in memory, and
// one process at a time may own a data folder: the second is told [ErrOwned].
//
// A campaign with a time to pay (PayWithin) grants claims that are [Pending],
// with a deadline: n.Orders.Confirm pays them, Cancel and the sweep at the deadline
// release them. Refund, Redeem, Unredeem and Ship are the other steps, and
// docs/STATES.md shows them all. A step may be sent again under its name.
//
// Values that a node hands out are shared with it: treat a *[Campaign] as
// read-only, and copy it before a change.
package dibs
