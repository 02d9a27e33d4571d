package access

import (
	"time"

	"github.com/dibs-dev/dibs"
)

// KeySpec is a key as an administrator asks for it.
type KeySpec struct {
	Name      string    `json:"name" doc:"what the key is for, 1-64 characters"`
	Role      Role      `json:"role" enum:"viewer,editor,publisher,admin" doc:"what the key may do; each role includes those before it"`
	Scopes    *Scopes   `json:"scopes,omitempty" doc:"narrow the role to some campaigns, merchants and operations; absent: all that the role may do"`
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"the first moment at which the key is not valid any more; absent: it has no end"`
}

// Faults lists what is wrong with a spec at a time.
func (s *KeySpec) Faults(now time.Time) []dibs.Fault {
	fs := dibs.TextFault("/name", s.Name, true, dibs.MaxIDLen)
	if !s.Role.May(RoleViewer) {
		fs = append(fs, dibs.Fault{Field: "/role", Problem: dibs.Text{EN: "must be viewer, editor, publisher or admin", ZH: "必须是 viewer、editor、publisher 或 admin"}})
	}
	if !s.ExpiresAt.IsZero() && !s.ExpiresAt.After(now) {
		fs = append(fs, dibs.Fault{Field: "/expires_at", Problem: dibs.Text{EN: "must be in the future", ZH: "必须晚于当前时间"}})
	}
	return append(fs, s.Scopes.faults()...)
}

// KeyRotation asks for a key in place of another one.
type KeyRotation struct {
	Overlap *dibs.Duration `json:"overlap,omitempty" doc:"how long the old key is valid too, default 24h, at most 720h; 0s ends it at once"`
}

// The overlap of a rotated key and its successor.
const (
	defaultOverlap = 24 * time.Hour
	maxOverlap     = 30 * 24 * time.Hour
)

// Span is how long the old key is valid too. *Error of InvalidRequest.
func (r *KeyRotation) Span() (time.Duration, error) {
	if r.Overlap == nil {
		return defaultOverlap, nil
	}
	if d := r.Overlap.Std(); d >= 0 && d <= maxOverlap {
		return d, nil
	}
	return 0, dibs.Invalid(dibs.Fault{Field: "/overlap", Problem: dibs.Textf("must be from 0s to %s", "必须在 0s 到 %s 之间", maxOverlap)})
}

// KeyView is a key as shown; Secret is there when it was made.
type KeyView struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Role       Role       `json:"role" enum:"viewer,editor,publisher,admin"`
	Scopes     *Scopes    `json:"scopes,omitempty" doc:"absent: all that the role may do"`
	Person     string     `json:"person,omitempty" doc:"whose sign-in at the identity provider the key is; absent: a key that was made"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty" doc:"absent: the key has no end"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty" doc:"to some half a minute; absent: it was never used"`
	RevokedAt  *time.Time `json:"revoked_at,omitempty"`
	Secret     string     `json:"secret,omitempty" doc:"the key itself, shown this once"`
}

// View returns the key as shown.
func (k *APIKey) View() KeyView {
	return KeyView{
		ID: k.ID, Name: k.Name, Role: k.Role, Scopes: k.Scopes, Person: k.Person, CreatedAt: k.CreatedAt,
		ExpiresAt: givenTime(&k.ExpiresAt), LastUsedAt: givenTime(&k.LastUsedAt), RevokedAt: givenTime(&k.RevokedAt),
	}
}

// Remembered is the answer without the secret: what is kept of it, to be the answer to a
// repeat, has none.
func (v KeyView) Remembered() any {
	v.Secret = ""
	return v
}
