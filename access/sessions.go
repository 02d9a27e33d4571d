package access

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/dibs-dev/dibs"
)

// Session is a session of the console: an API key that is signed in.
type Session struct {
	ID, Key string
	// Name is what the key is called.
	Name string
	// Address is where it was begun from, and Agent what the browser calls itself.
	Address, Agent       string
	CreatedAt, ExpiresAt time.Time
	// LastUsedAt is to some half a minute. EndedAt is zero for a session that was not ended.
	LastUsedAt, EndedAt time.Time
}

// ConsoleSessionView is a session as shown.
type ConsoleSessionView struct {
	ID         string    `json:"id"`
	KeyID      string    `json:"key_id"`
	Name       string    `json:"name" doc:"what the key is called; the e-mail address of a person who signed in at the identity provider"`
	Address    string    `json:"address" doc:"where it was begun from"`
	Agent      string    `json:"agent" doc:"what the browser calls itself"`
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	LastUsedAt time.Time `json:"last_used_at" doc:"to some half a minute"`
	Current    bool      `json:"current,omitempty" doc:"it is the one that asks"`
}

// View returns the session as shown.
func (s *Session) View() ConsoleSessionView {
	return ConsoleSessionView{
		ID: s.ID, KeyID: s.Key, Name: s.Name, Address: s.Address, Agent: s.Agent, CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt, LastUsedAt: s.LastUsedAt,
	}
}

// SessionLedger keeps sessions.
type SessionLedger interface {
	InsertSession(ctx context.Context, s *Session) error
	// InsertSignIn stores a session of a person, and its key, both or none; false when there is a session of that ID.
	InsertSignIn(ctx context.Context, k *APIKey, s *Session) (bool, error)
	// InsertPending stores a person who waits for a command line, unless most wait at that time; then it returns false.
	InsertPending(ctx context.Context, p *PendingSignIn, most int, at time.Time) (bool, error)
	// TakePending returns the person of a code's hash and challenge who waits at a time, and forgets them: of two calls,
	// one gets the person. ErrNotFound.
	TakePending(ctx context.Context, hash []byte, challenge string, at time.Time) (Person, error)
	// Session returns one, an ended one too. ErrNotFound.
	Session(ctx context.Context, id string) (*Session, error)
	// Sessions lists those of a key, or of all keys when it is empty, that last at a time;
	// newest first. Those of keys that were revoked or have expired do not.
	Sessions(ctx context.Context, key string, at time.Time) ([]Session, error)
	// EndSession ends one, and revokes its key when that is a person's. One that was ended keeps its time. ErrNotFound.
	EndSession(ctx context.Context, id string, at time.Time) error
	// TouchSessions notes when sessions were used last. An earlier time changes nothing.
	TouchSessions(ctx context.Context, used map[string]time.Time) error
	// DropSessions forgets those that expired before a time.
	DropSessions(ctx context.Context, before time.Time) error
	// DropSignIns forgets keys of persons that expired before a time.
	DropSignIns(ctx context.Context, before time.Time) error
	// DropPending forgets those who waited for a command line until before a time.
	DropPending(ctx context.Context, before time.Time) error
}

// sessionCacheFor is how long a checked session is not looked up again: one that is ended at
// another node works that long at most.
const sessionCacheFor = time.Second

// maxCachedSessions bounds what is remembered of sessions.
const maxCachedSessions = 1024

// keepSignIns is how long a person's key is kept after its end: longer than an approval that it asked for.
const keepSignIns = keepApprovals + 24*time.Hour

// maxAgent bounds what is kept of a browser's name, in bytes.
const maxAgent = 200

// Sessions are the sessions of the console. mu guards known, used and ends; of the first two each has an entry for
// a session at most, and known not more than maxCachedSessions.
type Sessions struct {
	ledger SessionLedger
	log    *slog.Logger
	now    func() time.Time
	// idle is after how long without a use a session ends; 0 for never.
	idle time.Duration
	// ended is told when a session was ended: its key may be revoked with it.
	ended func()
	mu    sync.Mutex
	// known is until when a session is believed; used is what the ledger does not know yet.
	known map[string]time.Time
	used  map[string]time.Time
	// ends counts the sessions that were ended here: what was looked up before is not believed after.
	ends int
}

// NewSessions returns the sessions of a ledger, which end when they are not used for idle, 0 for never. ended is called
// after each session that was ended here. Pass Access.ForgetKeys: a person's key ends with the session.
func NewSessions(ledger SessionLedger, idle time.Duration, ended func(), log *slog.Logger, now func() time.Time) *Sessions {
	return &Sessions{ledger: ledger, log: log, now: now, idle: idle, ended: ended, known: map[string]time.Time{}, used: map[string]time.Time{}}
}

var errSessionEnded = dibs.Fail(dibs.Unauthenticated, dibs.Text{EN: "the session has ended: sign in again", ZH: "会话已结束，请重新登录"})

// Begin notes a session of a key that lasts until then, or as long as the key.
func (s *Sessions) Begin(ctx context.Context, k *APIKey, until time.Time, address, agent string) (*Session, error) {
	if !k.ExpiresAt.IsZero() && k.ExpiresAt.Before(until) {
		until = k.ExpiresAt
	}
	is := newSession(NewSessionID(), k, dibs.Ms(s.now()), until, address, agent)
	return is, s.ledger.InsertSession(ctx, is)
}

func newSession(id string, k *APIKey, now, until time.Time, address, agent string) *Session {
	if len(agent) > maxAgent {
		agent = agent[:maxAgent]
	}
	return &Session{
		ID: id, Key: k.ID, Name: k.Name, Address: address, Agent: strings.ToValidUTF8(agent, ""), CreatedAt: now, LastUsedAt: now, ExpiresAt: dibs.Ms(until),
	}
}

// Check returns nil for a session that lasts; *Error of Unauthenticated for one that was ended, or that was not used for
// too long. It looks up a session once a second.
func (s *Sessions) Check(ctx context.Context, id string) error {
	now := s.now()
	s.mu.Lock()
	until, last, ends := s.known[id], s.used[id], s.ends
	s.mu.Unlock()
	if !now.Before(until) {
		is, err := s.ledger.Session(ctx, id)
		if errors.Is(err, dibs.ErrNotFound) || err == nil && (!is.EndedAt.IsZero() || !now.Before(is.ExpiresAt)) {
			return errSessionEnded
		}
		if err != nil {
			return dibs.AsUnavailable(err, dibs.EffectNone)
		}
		// Uses that other nodes saw are in the ledger half a minute later.
		if is.LastUsedAt.After(last) {
			last = is.LastUsedAt
		}
		if s.idle > 0 && now.Sub(last) >= s.idle {
			// It is refused whether its end can be noted or not.
			if err := s.End(ctx, id); err != nil {
				s.log.WarnContext(ctx, "the end of an idle session was not noted", "session", id, "err", err)
			}
			return errSessionEnded
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(until) && s.ends == ends {
		if len(s.known) >= maxCachedSessions {
			clear(s.known)
		}
		s.known[id] = now.Add(sessionCacheFor)
	}
	if _, noted := s.used[id]; noted || len(s.used) < maxCachedSessions {
		s.used[id] = dibs.Ms(now)
	}
	return nil
}

// List lists the sessions of a key that last, or of all keys when it is empty, newest first.
func (s *Sessions) List(ctx context.Context, key string) ([]Session, error) {
	all, err := s.ledger.Sessions(ctx, key, s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		// The use that this node saw last may be on its way to the ledger.
		if at := s.used[all[i].ID]; at.After(all[i].LastUsedAt) {
			all[i].LastUsedAt = at
		}
	}
	return all, err
}

// Get returns a session. ErrNotFound.
func (s *Sessions) Get(ctx context.Context, id string) (*Session, error) {
	return s.ledger.Session(ctx, id)
}

// End ends a session: at once on this node, within a second on others. The key of a person ends with it: at once on
// this node, within seconds on others. ErrNotFound.
func (s *Sessions) End(ctx context.Context, id string) error {
	err := s.ledger.EndSession(ctx, id, dibs.Ms(s.now()))
	s.ended()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends++
	delete(s.known, id)
	return err
}

// Tidy notes when sessions were used, and forgets those that ended by themselves.
func (s *Sessions) Tidy(ctx context.Context) {
	s.mu.Lock()
	used := maps.Clone(s.used)
	clear(s.used)
	s.mu.Unlock()
	if len(used) > 0 {
		logFailure(ctx, s.log, "noting when sessions were used failed", s.ledger.TouchSessions(ctx, used))
	}
	logFailure(ctx, s.log, "forgetting old sessions failed", s.ledger.DropSessions(ctx, s.now()))
	logFailure(ctx, s.log, "forgetting old sign-ins failed", s.ledger.DropSignIns(ctx, s.now().Add(-keepSignIns)))
	logFailure(ctx, s.log, "forgetting sign-ins that no command line took failed", s.ledger.DropPending(ctx, s.now()))
}
