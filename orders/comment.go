package orders

import (
	"context"
	"errors"

	"github.com/dibs-dev/dibs"
)

// Comment notes what an administrator has to say about a claim, and returns it; empty
// takes the comment away. A claim that is on its way to the ledger is waited for. The
// same comment again changes nothing but the time. *Error of NotFound, InvalidRequest or
// Unavailable.
func (s *Orders) Comment(ctx context.Context, id, comment string) (*dibs.Claim, error) {
	if fs := dibs.TextFault("/comment", comment, false, dibs.MaxCommentLen); len(fs) > 0 {
		return nil, dibs.Invalid(fs...)
	}
	p, err := s.ids.Decode(id)
	if err != nil {
		return nil, dibs.NoSuchClaim
	}
	c, err := s.registry.GetByNumber(ctx, p.Campaign)
	if errors.Is(err, dibs.ErrNotFound) {
		return nil, dibs.NoSuchClaim
	}
	if err != nil {
		return nil, err
	}
	at := dibs.Ms(s.now())
	err = s.ledger.Comment(ctx, p, comment, at)
	if errors.Is(err, dibs.ErrNotFound) {
		if err := s.awaitSettled(ctx, c, p); err != nil {
			return nil, err
		}
		err = s.ledger.Comment(ctx, p, comment, at)
	}
	if errors.Is(err, dibs.ErrNotFound) {
		return nil, dibs.NoSuchClaim
	}
	if err != nil {
		return nil, dibs.AsUnavailable(err, dibs.EffectUnknown)
	}
	return s.claims.Find(ctx, id)
}
