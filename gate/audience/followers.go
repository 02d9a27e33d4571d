package audience

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/api"
	"github.com/dibs-dev/dibs/gate"
)

// followAtOnce is how many followers are stored in one transaction.
// It bounds how long one transaction holds the merchant's row.
const followAtOnce = 2000

// ImportFollowers has the users of a file follow a merchant: `user` or
// `user,rank` on each line; a first line that says so is left out, and so are
// lines without anything. A rank that is absent is 0; who follows already gets
// the rank of the file. The whole file is read first: when any line is bad,
// nobody follows, and *dibs.Error of InvalidRequest names the first of them.
// Followers are stored some at a time, so that nobody waits for the file; an
// import that is broken off is repeated without harm. done is told how many have
// been stored; it may be nil.
func ImportFollowers(ctx context.Context, store gate.AudienceLedger, merchant string, file io.ReadSeeker, done func(stored int64)) (api.FollowersView, error) {
	v := api.FollowersView{Merchant: merchant}
	if !dibs.IsID(merchant) {
		return v, dibs.Invalid(dibs.Fault{Field: "/id", Problem: dibs.BadID})
	}
	if err := readLines(ctx, file, followerRules, func(gate.Follower) error {
		v.Imported++
		return nil
	}); err != nil {
		return v, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return v, dibs.Unavail(dibs.EffectNone, err)
	}
	since := time.Now().UTC().Truncate(time.Millisecond)
	var part []gate.Follower
	var stored int64
	flush := func() error {
		n, err := store.Follow(ctx, merchant, part, true)
		v.New += n
		stored += int64(len(part))
		part = part[:0]
		if err == nil && done != nil {
			done(stored)
		}
		return err
	}
	err := readLines(ctx, file, followerRules, func(f gate.Follower) error {
		f.Since = since
		if part = append(part, f); len(part) < followAtOnce {
			return nil
		}
		return flush()
	})
	if err == nil && len(part) > 0 {
		err = flush()
	}
	if err != nil {
		return v, err
	}
	m, err := merchantOf(ctx, store, merchant)
	v.Followers = m.Followers
	return v, err
}

// merchantOf reads a merchant. The ledger has no row for one without followers; merchantOf returns it
// with none.
func merchantOf(ctx context.Context, store gate.AudienceLedger, id string) (gate.Merchant, error) {
	m, err := store.Merchant(ctx, id)
	switch {
	case errors.Is(err, dibs.ErrNotFound):
		return gate.Merchant{ID: id}, nil
	case err != nil:
		return gate.Merchant{}, err
	}
	return *m, nil
}

var followerRules = rules[gate.Follower]{
	parse: follower,
	bad: dibs.Text{
		EN: "is no follower: a user's id of 1-64 characters of A-Z a-z 0-9 . _ -, alone or with a comma and a rank, a whole number",
		ZH: "不是关注者：每行一个用户 ID（1-64 个字符，限 A-Z a-z 0-9 . _ -），可后接逗号和整数等级",
	},
	many: dibs.Textf("is one more than the %d followers that a merchant may have", "超过商家关注者上限 %d", gate.MaxAudience),
}

// follower reads a line; skip says that there is nobody on it.
func follower(line string, n int) (f gate.Follower, ok, skip bool) {
	user, rank, ranked := strings.Cut(line, ",")
	user, rank = lineText(user, 0), lineText(rank, 0)
	if line == "" || n == 1 && (user == "user" || user == "user_id") && (!ranked || rank == "rank") {
		return f, false, true
	}
	if ranked {
		var err error
		if f.Rank, err = strconv.ParseInt(rank, 10, 64); err != nil {
			return f, false, false
		}
	}
	f.User = user
	return f, dibs.IsID(user), false
}

// ImportFollowers adds followers, as the function of this name does.
func (k *Keeper) ImportFollowers(ctx context.Context, merchant string, file io.ReadSeeker, done func(stored int64)) (api.FollowersView, error) {
	return ImportFollowers(ctx, k.cfg.Store, merchant, file, done)
}

// Merchant returns how many follow a merchant: none, when nobody ever did.
func (k *Keeper) Merchant(ctx context.Context, id string) (gate.Merchant, error) {
	if !dibs.IsID(id) {
		return gate.Merchant{}, dibs.Invalid(dibs.Fault{Field: "/id", Problem: dibs.BadID})
	}
	return merchantOf(ctx, k.cfg.Store, id)
}
