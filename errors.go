package dibs

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Effect says what an unanswered request may have done.
type Effect string

// The effects that an Unavailable or Overloaded error carries.
const (
	// EffectNone: nothing was granted and nothing changed.
	EffectNone Effect = "none"
	// EffectUnknown: this request, or an earlier one with its key, may have been
	// granted. Repeat with the same key to find out.
	EffectUnknown Effect = "unknown"
)

// Fault is one thing wrong with an input.
type Fault struct {
	// Field is a JSON pointer into the input, `/stock/units`.
	Field string
	// Problem says what is wrong and what would be right.
	Problem Text
}

// Error is a request that could not be done, with the reason for it. Errors
// of dibs that a caller can act on are of this type or wrap it; use errors.As
// for the fields, or errors.Is with one of the sentinels for the reason alone.
type Error struct {
	Reason Reason
	// Detail is this case's own sentence; the reason's title when empty.
	Detail Text
	// Faults lists every fault of a bad input at once.
	Faults []Fault
	// Effect is set on Unavailable and Overloaded.
	Effect Effect
	// RetryAfter is how long to wait before the same request makes sense.
	RetryAfter time.Duration
	// Cause is the error behind it. It is logged, never shown to users.
	Cause error
}

// Sentinels for errors.Is: each matches any *Error of its reason.
var (
	ErrInvalid           = &Error{Reason: InvalidRequest}
	ErrKeyReused         = &Error{Reason: KeyReused}
	ErrNotFound          = &Error{Reason: NotFound}
	ErrAlreadyExists     = &Error{Reason: AlreadyExists}
	ErrInvalidState      = &Error{Reason: InvalidState}
	ErrInsufficientFunds = &Error{Reason: InsufficientFunds}
	ErrUnavailable       = &Error{Reason: Unavailable}
	ErrOverloaded        = &Error{Reason: Overloaded}
	ErrForbidden         = &Error{Reason: Forbidden}
)

// Errors of the contracts between the service, an engine and a ledger.
var (
	// ErrConflict: the row changed since it was read; read again and retry.
	ErrConflict = errors.New("dibs: the row was changed by someone else")
	// ErrPositionMoved: another settler has settled this shard further.
	ErrPositionMoved = errors.New("dibs: the shard's committed position moved")
	// ErrGap: the journal does not continue where the ledger's position ends.
	ErrGap = errors.New("dibs: the journal does not continue at the committed position")
	// ErrPoison: a journal entry is one that the ledger cannot take as it is,
	// however often it is tried.
	ErrPoison = errors.New("dibs: the ledger cannot take a journal entry")
	// ErrForked: the ledger has a claim at the place of an entry that is not
	// settled. Journal and ledger contradict each other.
	ErrForked = errors.New("dibs: the ledger has a claim at a place that is not settled")
	// ErrOwned: another process owns the embedded journal.
	ErrOwned = errors.New("dibs: another process owns this journal")
	// ErrFenced: another process has taken over. Of the embedded journal: it belongs
	// to that process. Of a shard: its epoch was raised, and what was read before
	// changes nothing any more.
	ErrFenced = errors.New("dibs: another process has taken over")
	// ErrElsewhere: another server holds the shard, is alive, and has a later history
	// of it.
	ErrElsewhere = errors.New("dibs: the shard is open on another server of the engine, which is alive")
	// ErrCorrupt: stored bytes are damaged; nothing past them was read.
	ErrCorrupt = errors.New("dibs: stored data is damaged")
	// ErrStale: a command of an older epoch; the rebuild has counted it.
	ErrStale = errors.New("dibs: the command belongs to an older epoch")
	// ErrNotOpen: the engine does not hold this campaign's shard.
	ErrNotOpen = errors.New("dibs: the engine does not hold this shard")
)

// Fail makes an error of a reason with its own sentence.
func Fail(r Reason, detail Text) *Error { return &Error{Reason: r, Detail: detail} }

// Invalid makes an InvalidRequest error from faults.
func Invalid(faults ...Fault) *Error { return &Error{Reason: InvalidRequest, Faults: faults} }

// Unavail makes an Unavailable error with its effect and cause.
func Unavail(effect Effect, cause error) *Error {
	return &Error{Reason: Unavailable, Effect: effect, Cause: cause, RetryAfter: time.Second}
}

// The answers of a claim for which the guard has no place, without a key and with
// one.
var shedPlain, shedKeyed = shed(false), shed(true)

func shed(keyed bool) *Error {
	return &Error{
		Reason: Overloaded, Effect: unlookedEffect(keyed), RetryAfter: time.Second,
		Detail: Text{"more people claim than can be answered in time", "当前领取人数过多，请稍后重试"},
	}
}

// Shed is the error of a claim that is refused because too many are under way.
// All that has to be known of the claim is whether it has a key. With one it may be
// the repeat of a claim that was granted, which was not looked up: its effect is
// unknown then.
func Shed(keyed bool) *Error {
	if keyed {
		return shedKeyed
	}
	return shedPlain
}

// Text returns the sentence for people: the detail, or the reason's title.
func (e *Error) Text() Text {
	if e.Detail.EN != "" {
		return e.Detail
	}
	return e.Reason.Info().Title
}

// Error lists the reason, the detail, each fault and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.String())
	if e.Detail.EN != "" {
		b.WriteString(": " + e.Detail.EN)
	}
	for i, f := range e.Faults {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s %s", sep, strings.TrimPrefix(f.Field, "/"), f.Problem.EN)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is matches the sentinels: two *Error are alike when their reasons are.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// unlookedEffect is the effect of a refused request, with a key or without, when
// nobody has looked whether it is the repeat of one that was granted.
func unlookedEffect(keyed bool) Effect {
	if keyed {
		return EffectUnknown
	}
	return EffectNone
}
