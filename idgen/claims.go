package idgen

import (
	"context"
	"fmt"

	"github.com/dibs-dev/dibs"
)

var _ dibs.Permutation = (*Feistel)(nil)

// Secrets is where the key of claim ids is kept: the ledger, so that every
// node has the same one.
type Secrets interface {
	// Secret returns the named secret, made from random bytes the first time.
	Secret(ctx context.Context, name string, size int) ([]byte, error)
}

// ForClaims returns the claim ids of a ledger, making their key in a new one.
func ForClaims(ctx context.Context, s Secrets) (dibs.ClaimIDs, error) {
	key, err := s.Secret(ctx, "claim-id", KeySize)
	if err != nil {
		return dibs.ClaimIDs{}, fmt.Errorf("idgen: reading the key of claim ids: %w", err)
	}
	perm, err := NewFeistel(key)
	if err != nil {
		return dibs.ClaimIDs{}, err
	}
	return dibs.NewClaimIDs(perm), nil
}
