package redisengine

import (
	"fmt"
	"strconv"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/engine/redisengine/internal/conn"
	"github.com/dibs-dev/dibs/engine/redisengine/internal/format"
)

// outcomes are what the letters of an answer stand for.
var outcomes = [256]struct {
	reason dibs.Reason
	known  bool
}{
	'G': {dibs.Granted, true}, 'R': {dibs.Granted, true}, 'K': {dibs.KeyReused, true}, 'O': {dibs.Overloaded, true},
	'P': {dibs.Paused, true}, 'E': {dibs.Ended, true}, 'N': {dibs.NotStarted, true}, 'S': {dibs.SoldOut, true},
	'L': {dibs.LimitReached, true}, 'Q': {dibs.LimitReached, true}, 'U': {dibs.Unavailable, true}, 'M': {dibs.TooManyClaims, true},
	'A': {dibs.NotFound, true},
}

// answers is what a claim script answered: what holds for all claims of the call,
// a letter for each, and the details of those that have one, in order. It does not
// change: the callers read it side by side.
type answers struct {
	shard   dibs.ShardID
	letters string
	details []conn.Reply
	atMS    int64
	payInMS int64
	items   bool
	// before is the place that the shard had reached before the call.
	before dibs.Cursor
}

// told is a claim's own part of its call's answers: the caller makes the decision
// of it, so that who delivers a thousand of them has little to do for each.
type told struct {
	by     *answers
	at     dibs.Cursor
	detail string
	letter byte
}

func answersOf(id dibs.ShardID, res *conn.Result) (*answers, error) {
	if len(res.Rest) < 4 {
		return nil, conn.ErrShape
	}
	return &answers{
		shard: id, atMS: res.Rest[0].Number, payInMS: res.Rest[1].Number, items: res.Rest[2].Number == 1,
		letters: res.Rest[3].Text, details: res.Rest[4:], before: res.At,
	}, nil
}

// detailed reports whether a letter comes with a detail.
func (a *answers) detailed(letter byte) bool {
	return letter == 'R' || letter == 'S' || letter == 'L' || letter == 'Q' || letter == 'G' && a.items
}

// decision is what a claim was told.
func (t *told) decision(req *dibs.EngineClaim) (d dibs.Decision, err error) {
	a, outcome := t.by, outcomes[t.letter]
	if !outcome.known {
		return d, dibs.Unavail(dibs.EffectNone, fmt.Errorf("redisengine: the epoch of shard %s has no places left", a.shard))
	}
	d.Outcome = outcome.reason
	switch t.letter {
	case 'G':
		d.Grant = dibs.Grant{Position: dibs.Position{ShardID: a.shard, Cursor: t.at}, UserID: req.UserID, Quantity: req.Quantity, At: a.atMS}
		if a.payInMS > 0 {
			d.Grant.PayBy = a.atMS + a.payInMS
		}
		if a.items {
			d.Grant.Items, err = format.ItemValues(t.detail)
		}
	case 'R':
		d.Replayed = true
		d.Grant, err = format.GrantOf(a.shard, req.UserID, t.detail, a.payInMS)
	case 'S':
		d.Remaining, err = strconv.ParseInt(t.detail, 10, 64)
	case 'L', 'Q':
		d.OfProduct = t.letter == 'Q'
		d.Held, err = format.HeldOf(a.shard, t.detail)
	}
	if err != nil {
		return dibs.Decision{}, dibs.Unavail(dibs.EffectUnknown, err)
	}
	return d, nil
}
