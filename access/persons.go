package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/faults"
)

// Person is an administrator whom an identity provider has identified.
type Person struct {
	// Subject names the person for good, whatever becomes of their e-mail address: the provider's address and its
	// name of them.
	Subject string
	// Name is what the admin log calls them: their e-mail address, with a word where the provider has not verified it, or
	// what the provider calls them.
	Name string
	Role Role
}

// Attempt is what one sign-in at a provider is recognised by. All three are random, and secret until they are used.
type Attempt struct {
	// State comes back with the answer, Nonce within the provider's token. Verifier proves to the provider that the
	// sender of the code is the one that asked for it (PKCE).
	State, Nonce, Verifier string
}

// SignIn is a person's sign-in that becomes a session.
type SignIn struct {
	// ID is of the session. A second sign-in of the same ID is refused.
	ID     string
	Person Person
	Until  time.Time
	// Address is where it comes from, and Agent what the program calls itself.
	Address, Agent string
}

// PendingSignIn is a person who has been identified for a command line, which has not fetched its key yet.
//
// The ledger has it, and not the code: the code only names the row, and the ledger keeps the code's hash. So a copy of
// the ledger names no one who was not identified, and has no code that is worth something.
type PendingSignIn struct {
	// Hash is the SHA-256 of the code.
	Hash   []byte
	Person Person
	// Challenge is what the command line has to prove itself by; the code is worth nothing without it.
	Challenge string
	Until     time.Time
}

// maxPendingSignIns bounds those that wait at a time. Each took a sign-in at the provider.
const maxPendingSignIns = 1000

var errManySignIns = faults.Busy(time.Minute, dibs.Text{EN: "too many sign-ins wait for their command line", ZH: "等待命令行完成的登录过多"})

// Pend keeps a person for a command line until then, and returns the code, this once. *Error of Overloaded when too
// many wait.
func (s *Sessions) Pend(ctx context.Context, is Person, challenge string, until time.Time) (code string, err error) {
	code = rand.Text()
	hash := sha256.Sum256([]byte(code))
	stored, err := s.ledger.InsertPending(ctx, &PendingSignIn{Hash: hash[:], Person: is, Challenge: challenge, Until: dibs.Ms(until)}, maxPendingSignIns, s.now())
	return code, orRefusal(stored, err, errManySignIns)
}

// TakePending returns the person of a code at a time, once. *Error of Unauthenticated for a code that is none, is too old, was
// used before, or is of another challenge; the latter leaves it as it is.
func (s *Sessions) TakePending(ctx context.Context, code, challenge string, at time.Time) (Person, error) {
	hash := sha256.Sum256([]byte(code))
	is, err := s.ledger.TakePending(ctx, hash[:], challenge, at)
	if errors.Is(err, dibs.ErrNotFound) {
		err = ErrCodeUsed
	}
	return is, err
}

// NewSessionID returns an id for a session.
func NewSessionID() string { return dibs.NewID("s-") }

// ErrCodeUsed answers a code that no sign-in waits for, or that was used before: which of them is not told.
var ErrCodeUsed = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the code is not valid, or was used before", ZH: "登录码无效或已使用"})

// SignIn begins a session of a person: it makes a key that lasts as long as the session, and is revoked with it.
// *Error of Unauthenticated when the ID was used before, of InvalidRequest for a name that cannot be a key's.
func (s *Sessions) SignIn(ctx context.Context, in SignIn) (k *APIKey, secret string, is *Session, err error) {
	now := dibs.Ms(s.now())
	k, secret, err = NewKey(KeySpec{Name: personName(in.Person.Name), Role: in.Person.Role, ExpiresAt: in.Until}, now)
	if err != nil {
		return nil, "", nil, err
	}
	k.Person = in.Person.Subject
	is = newSession(in.ID, k, now, in.Until, in.Address, in.Agent)
	stored, err := s.ledger.InsertSignIn(ctx, k, is)
	if err := orRefusal(stored, err, ErrCodeUsed); err != nil {
		return nil, "", nil, err
	}
	return k, secret, is, nil
}

// personName is the name of a person's key, which is no longer than other keys' names.
func personName(name string) string {
	if runes := []rune(name); len(runes) > dibs.MaxIDLen {
		return string(runes[:dibs.MaxIDLen])
	}
	return name
}
