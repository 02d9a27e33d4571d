package audience

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/wait"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/gate"
)

// Keeper has in memory what campaigns need of lists and followers, and is the
// gate that asks. It is safe for concurrent use.
//
// Claims read lists and merchants at any time, without a lock. Only the loop, and
// Start before it, writes them: version, seq and failing need none either. A set that
// is published does not change; a newer one takes its place.
type Keeper struct {
	cfg Config
	log *slog.Logger
	// lists and merchants are what is loaded, or wanted, by id.
	lists     sync.Map // string -> *list
	merchants sync.Map // string -> *followers
	kick      chan struct{}
	life      context.Context
	cancel    context.CancelFunc
	loop      sync.WaitGroup
	// failing has what could not be loaded the last time; the loop's.
	failing map[string]bool
	counts  counts
	// ended is closed when the round ends that is under way or comes next, and another
	// takes its place; nil before Start. waiting counts the claims that wait for it.
	ended   atomic.Pointer[chan struct{}]
	waiting atomic.Int64
}

var _ dibs.Gate = (*Keeper)(nil)

// Config configures a Keeper. Store is required.
type Config struct {
	Store gate.AudienceLedger
	// Every is how often new versions and followers are looked for; default 1s.
	Every time.Duration
	// Logger is told of lists that cannot be loaded; default: nobody.
	Logger *slog.Logger
}

// list is a list as this node has it; the set is nil until it is loaded. Claims read set at
// any time; the Keeper's loop alone writes both, and alone reads version.
type list struct {
	set     atomic.Pointer[Set]
	version int64
}

// NewKeeper returns a keeper that has nothing yet. Start and Close it.
func NewKeeper(cfg Config) *Keeper {
	cfg.Every = cmp.Or(cfg.Every, time.Second)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	k := &Keeper{cfg: cfg, log: cfg.Logger, kick: make(chan struct{}, 1), failing: make(map[string]bool)}
	k.life, k.cancel = context.WithCancel(context.Background())
	return k
}

// Start loads what the campaigns need that the node holds, before it returns,
// and goes on doing so.
// A list that cannot be loaded is tried again each round. Until then claims are refused
// as overloaded, and nobody is let in by mistake.
func (k *Keeper) Start(ctx context.Context, held func() []*dibs.Campaign) {
	k.round(ctx, held)
	ended := make(chan struct{})
	k.ended.Store(&ended)
	k.loop.Go(func() {
		for wait.SleepOr(k.life, k.cfg.Every, k.kick) {
			k.round(k.life, held)
			next := make(chan struct{})
			close(*k.ended.Swap(&next))
		}
	})
}

// Close stops loading.
func (k *Keeper) Close() {
	k.cancel()
	k.loop.Wait()
}

var (
	notListed   = dibs.Text{EN: "this campaign is for invited users", ZH: "本活动仅限受邀用户参与"}
	notFollower = dibs.Text{EN: "this campaign is for followers of the merchant", ZH: "本活动仅限该商家的关注者参与"}
	notLoaded   = dibs.Text{EN: "who may claim is being loaded", ZH: "正在加载活动名单"}
)

// Pass implements dibs.Gate.
// It is called for every claim and reads memory only, but for the first claims after a
// campaign got another audience: these wait until it is loaded, for loadWithin at most.
func (k *Keeper) Pass(ctx context.Context, c *dibs.Campaign, req *dibs.ClaimRequest) (dibs.Result, bool) {
	a := c.Gate.Audience
	if a == nil {
		return dibs.Result{}, true
	}
	is, loaded := k.isIn(a, req.UserID)
	if !loaded {
		is, loaded = k.await(ctx, a, req.UserID)
	}
	switch {
	case !loaded:
		k.counts.notLoaded.Add(1)
		return dibs.Result{Outcome: dibs.Overloaded, RetryAfter: time.Second, Detail: notLoaded}, false
	case !is && a.List == "":
		return dibs.Result{Outcome: dibs.NotEligible, Detail: notFollower}, false
	case !is:
		return dibs.Result{Outcome: dibs.NotEligible, Detail: notListed}, false
	}
	return dibs.Result{}, true
}

const (
	// loadWithin is how long a claim waits for its audience. A list of a million users is
	// loaded by then on common machines, and few callers wait longer for an answer.
	loadWithin = 2 * time.Second
	// mostWaiting is how many claims may wait: more are refused at once.
	mostWaiting = 10_000
)

// await has an audience loaded and asks again. It does not wait before Start, and for no
// more than two rounds: the one that is under way may have begun before the campaign had
// this audience.
func (k *Keeper) await(ctx context.Context, a *dibs.AudienceSpec, user string) (is, loaded bool) {
	defer k.waiting.Add(-1)
	if k.waiting.Add(1) > mostWaiting {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	for range 2 {
		ended := k.ended.Load()
		if ended == nil {
			return false, false
		}
		wait.Kick(k.kick)
		select {
		case <-*ended:
		case <-k.life.Done():
			return false, false
		case <-ctx.Done():
			return false, false
		}
		if is, loaded = k.isIn(a, user); loaded {
			return is, true
		}
	}
	return false, false
}

// isIn reports whether a user is in an audience, when that is known here.
func (k *Keeper) isIn(a *dibs.AudienceSpec, user string) (is, loaded bool) {
	if a.List != "" {
		if v, ok := k.lists.Load(a.List); ok {
			if set := v.(*list).set.Load(); set != nil {
				return set.Has(user), true
			}
		}
		return false, false
	}
	if v, ok := k.merchants.Load(a.FollowersOf); ok {
		if f := v.(*followers).current.Load(); f != nil {
			return f.has(user), true
		}
	}
	return false, false
}

// round loads what is needed and has changed, and lets go of what is not needed.
func (k *Keeper) round(ctx context.Context, held func() []*dibs.Campaign) {
	lists, merchants := map[string]bool{}, map[string]bool{}
	for _, c := range held() {
		if c.Gate == nil || c.Gate.Audience == nil {
			continue
		}
		if id := c.Gate.Audience.List; id != "" {
			lists[id] = true
		} else {
			merchants[c.Gate.Audience.FollowersOf] = true
		}
	}
	k.refresh(ctx, &k.lists, lists, "list", k.loadList)
	k.refresh(ctx, &k.merchants, merchants, "followers", k.loadFollowers)
	maps.DeleteFunc(k.failing, func(name string, _ bool) bool {
		what, id, _ := strings.Cut(name, " ")
		return what == "list" && !lists[id] || what != "list" && !merchants[id]
	})
	k.counts.failing.Store(int64(len(k.failing)))
}

// refresh loads the ids of a kind that are needed.
// One that fails does not keep the others from being loaded.
func (k *Keeper) refresh(ctx context.Context, have *sync.Map, need map[string]bool, what string, load func(context.Context, string) error) {
	have.Range(func(id, _ any) bool {
		if !need[id.(string)] {
			have.Delete(id)
		}
		return true
	})
	for id := range need {
		err := load(ctx, id)
		if name := what + " " + id; err == nil {
			delete(k.failing, name)
		} else if ctx.Err() == nil {
			if !k.failing[name] {
				k.log.Warn("who may claim could not be loaded; what is known stays", what, id, "err", err)
			}
			k.failing[name] = true
			k.counts.failed.Add(1)
		}
	}
}

// loadList loads a list's version unless it is the one that is here.
// The number of users is compared too: erasing a user changes a list without a new
// version.
func (k *Keeper) loadList(ctx context.Context, id string) error {
	a, err := k.cfg.Store.Audience(ctx, id)
	if err != nil {
		return err
	}
	v, _ := k.lists.LoadOrStore(id, &list{})
	l := v.(*list)
	if set := l.set.Load(); set != nil && l.version == a.Version && set.Len() == a.Users {
		return nil
	}
	set, err := Load(ctx, k.cfg.Store, a)
	if err != nil {
		return err
	}
	l.version = a.Version
	l.set.Store(set)
	k.log.Info("a list of users is loaded", "list", id, "users", set.Len(), "bytes", set.Bytes())
	return nil
}

// followers are a merchant's, as this node knows them; current is nil until they are loaded.
// Claims read current at any time. The Keeper's loop alone writes both, and alone reads seq, the
// number of the last change that is in current.
type followers struct {
	current atomic.Pointer[following]
	seq     int64
}

// following is followers at one moment: a set, and who changed since.
// Neither part changes once it is published: changes make another following.
type following struct {
	base  *Set
	later map[string]bool
}

func (f *following) has(user string) bool {
	follows, changed := f.later[user]
	return follows || !changed && f.base.Has(user)
}

const (
	// changesRead is how many changes are read at once, changesMost how many there
	// are before the set is made anew.
	changesRead = 10_000
	changesMost = 50_000
)

// loadFollowers takes the changes of a merchant's followers.
// One page of changes a round: more wait for the next one.
func (k *Keeper) loadFollowers(ctx context.Context, id string) error {
	v, _ := k.merchants.LoadOrStore(id, &followers{})
	f := v.(*followers)
	known := f.current.Load()
	if known == nil || len(known.later) > changesMost {
		return k.loadAll(ctx, id, f)
	}
	changes, err := k.cfg.Store.FollowerChanges(ctx, id, f.seq, changesRead)
	if err != nil || len(changes) == 0 {
		return err
	}
	next := &following{base: known.base, later: maps.Clone(known.later)}
	for _, c := range changes {
		next.later[c.User] = c.Follows
	}
	f.current.Store(next)
	f.seq = changes[len(changes)-1].Seq
	return nil
}

// loadAll loads all followers of a merchant.
// It reads all changes from the beginning, in the order in which they were made.
func (k *Keeper) loadAll(ctx context.Context, id string, f *followers) (err error) {
	var seed [seedLen]byte
	_, _ = rand.Read(seed[:])
	p := newPrinter(seed)
	s, err := newSorter(p)
	if err != nil {
		return err
	}
	defer s.close()
	// Changes up to here are each user's only one; of those that come meanwhile, one
	// may take back what was read before.
	begun, err := merchantOf(ctx, k.cfg.Store, id)
	if err != nil {
		return err
	}
	later := make(map[string]bool)
	var seq, users int64
	for {
		changes, err := k.cfg.Store.FollowerChanges(ctx, id, seq, changesRead)
		if err != nil {
			return err
		}
		for _, c := range changes {
			seq = c.Seq
			if !c.Follows {
				if c.Seq > begun.Seq {
					later[c.User] = false
				}
				continue
			}
			users++
			delete(later, c.User)
			if err := s.add(c.User); err != nil {
				return err
			}
		}
		if len(changes) < changesRead {
			break
		}
	}
	// A user who came twice is there once, so there is room for all.
	b := newSetBuilder(p, users)
	if err := s.each(func(user string) error { return b.add(p.of(user)) }); err != nil {
		return err
	}
	f.current.Store(&following{base: b.done(), later: later})
	f.seq = seq
	return nil
}

// Import replaces a list, as the function of this name does, and has this node
// notice at once.
func (k *Keeper) Import(ctx context.Context, id string, file io.Reader, done func(stored int64)) (api.AudienceView, error) {
	// After an error the list is what it was, and the import may be repeated.
	got, err := Import(ctx, k.cfg.Store, id, file, done)
	if err != nil {
		return api.AudienceView{}, err
	}
	wait.Kick(k.kick)
	return got.View(), nil
}

// Audience returns a list.
func (k *Keeper) Audience(ctx context.Context, id string) (*dibs.Audience, error) {
	return k.cfg.Store.Audience(ctx, id)
}

// AudienceList lists by id.
func (k *Keeper) AudienceList(ctx context.Context, page dibs.Page) (dibs.List[dibs.Audience], error) {
	return k.cfg.Store.AudienceList(ctx, page)
}

// Follow makes a user follow a merchant, or no longer.
func (k *Keeper) Follow(ctx context.Context, merchant string, f gate.Follower, follows bool) error {
	var fs []dibs.Fault
	for field, id := range map[string]string{"/id": merchant, "/user": f.User} {
		if !dibs.IsID(id) {
			fs = append(fs, dibs.Fault{Field: field, Problem: dibs.BadID})
		}
	}
	if len(fs) > 0 {
		return dibs.Invalid(fs...)
	}
	f.Since = time.Now().UTC().Truncate(time.Millisecond)
	_, err := k.cfg.Store.Follow(ctx, merchant, []gate.Follower{f}, follows)
	return err
}

// Followers lists a merchant's followers, the highest rank first.
func (k *Keeper) Followers(ctx context.Context, merchant string, page dibs.Page) (dibs.List[gate.Follower], error) {
	return k.cfg.Store.Followers(ctx, merchant, page)
}
