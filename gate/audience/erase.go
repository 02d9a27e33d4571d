package audience

import (
	"context"
	"errors"
	"fmt"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/erasure"
)

var _ erasure.Eraser = (*Keeper)(nil)

// errFound ends the reading of a part.
var errFound = errors.New("audience: found")

// ListsOf implements erasure.Eraser: it reads all lists.
// It takes as long as all lists together, and stops after erasure.MaxUserRecord of
// them.
func (k *Keeper) ListsOf(ctx context.Context, user string) ([]string, error) {
	var has []string
	err := k.eachList(ctx, func(a *dibs.Audience) error {
		if len(has) == erasure.MaxUserRecord {
			return nil
		}
		err := eachUser(ctx, k.cfg.Store, a, func(one string) error {
			if one == user {
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			has, err = append(has, a.ID), nil
		}
		return err
	})
	return has, err
}

// EraseUser implements erasure.Eraser: it takes a user out of the versions of lists
// that count. Imports under way are their importer's.
// After an error it may be repeated: lists that no longer have the user are left as
// they are.
func (k *Keeper) EraseUser(ctx context.Context, user string) (n int64, err error) {
	err = k.eachList(ctx, func(a *dibs.Audience) error {
		return eachPart(ctx, k.cfg.Store, a, func(part int, raw []byte) (int64, error) {
			others, found, err := without(raw, user)
			if err != nil || !found {
				return int64(len(others)), err
			}
			left, err := packUsers(others)
			if err != nil {
				return 0, err
			}
			if err := k.cfg.Store.ReplaceAudiencePart(ctx, a, part, left, a.Users-1); err != nil {
				return 0, fmt.Errorf("audience: erasing a user from the list %s: %w", a.ID, err)
			}
			n++
			// Nobody is on a list twice.
			return 0, errFound
		})
	})
	return n, err
}

// without returns the others of a part, and whether the user is in it.
func without(raw []byte, user string) (others []string, found bool, err error) {
	err = unpackUsers(raw, func(one string) error {
		if one == user {
			found = true
		} else {
			others = append(others, one)
		}
		return nil
	})
	return others, found, err
}

// eachList calls do for every list.
func (k *Keeper) eachList(ctx context.Context, do func(*dibs.Audience) error) error {
	for page := (dibs.Page{Limit: dibs.MaxPage}); ; {
		l, err := k.cfg.Store.AudienceList(ctx, page)
		if err != nil {
			return err
		}
		for i := range l.Items {
			// errFound ends the search in one list. A list that was replaced meanwhile is another
			// importer's.
			if err := do(&l.Items[i]); err != nil && !errors.Is(err, errFound) && !errors.Is(err, dibs.ErrNotFound) {
				return err
			}
		}
		if page.Cursor = l.NextCursor; page.Cursor == "" {
			return nil
		}
	}
}
