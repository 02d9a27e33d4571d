package access

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dibs-dev/dibs"
)

// Scopes narrow what a key may do to some things and some operations. An empty list does
// not narrow; a key with both campaigns and merchants may act on either. A campaign's or
// merchant's name that ends in * stands for all that begin like it.
type Scopes struct {
	Campaigns []string `json:"campaigns,omitempty" doc:"only what is about these campaigns, their claims among it; shop-* for all that begin so"`
	Merchants []string `json:"merchants,omitempty" doc:"only what is about these merchants; shop-* for all that begin so"`
	Actions   []string `json:"actions,omitempty" doc:"only these operations, by their operationId in /openapi.json: confirm-claim, ship-claim"`
}

// maxScopes bounds the names of each list, and maxScopesText all of them as JSON in bytes.
const (
	maxScopes     = 50
	maxScopesText = 4096
)

// Empty reports whether scopes narrow nothing.
func (s *Scopes) Empty() bool {
	return s == nil || len(s.Campaigns)+len(s.Merchants)+len(s.Actions) == 0
}

// MayAct reports whether an operation is within the scopes.
func (s *Scopes) MayAct(operation string) bool {
	return s.Empty() || len(s.Actions) == 0 || slices.Contains(s.Actions, operation)
}

// OnThings reports whether the scopes name things, so that a call has to be about one.
func (s *Scopes) OnThings() bool { return s != nil && len(s.Campaigns)+len(s.Merchants) > 0 }

// MayCampaign reports whether the scopes name a campaign.
func (s *Scopes) MayCampaign(id string) bool { return names(s.Campaigns, id) }

// MayMerchant reports whether the scopes name a merchant.
func (s *Scopes) MayMerchant(id string) bool { return names(s.Merchants, id) }

// names reports whether one of the names is an id, or its beginning.
func names(list []string, id string) bool {
	return id != "" && slices.ContainsFunc(list, func(name string) bool {
		begin, many := strings.CutSuffix(name, "*")
		return name == id || many && strings.HasPrefix(id, begin)
	})
}

// faults lists what is wrong with scopes.
func (s *Scopes) faults() []dibs.Fault {
	if s == nil {
		return nil
	}
	var fs []dibs.Fault
	for _, l := range []struct {
		field string
		names []string
	}{{"/scopes/campaigns", s.Campaigns}, {"/scopes/merchants", s.Merchants}} {
		bad := slices.ContainsFunc(l.names, func(name string) bool {
			begin, many := strings.CutSuffix(name, "*")
			return !dibs.IsID(begin) && (begin != "" || !many)
		})
		if bad || len(l.names) > maxScopes {
			fs = append(fs, dibs.Fault{Field: l.field, Problem: dibs.Textf("must be at most %d ids, each may end in *", "最多 %d 个 id，每个可以以 * 结尾", maxScopes)})
		}
	}
	// A * would be part of the name here, which is no operation's.
	unnamed := func(name string) bool { return !dibs.IsID(name) }
	if slices.ContainsFunc(s.Actions, unnamed) || len(s.Actions) > maxScopes {
		fs = append(fs, dibs.Fault{Field: "/scopes/actions", Problem: dibs.Textf("must be at most %d operations, each by its whole operationId", "最多 %d 个操作，每个须写完整的 operationId", maxScopes)})
	}
	if len(fs) == 0 && len(s.String()) > maxScopesText {
		fs = append(fs, dibs.Fault{Field: "/scopes", Problem: dibs.Textf("must be at most %d bytes of JSON", "JSON 最多 %d 字节", maxScopesText)})
	}
	return fs
}

// String is the scopes as the ledger keeps them: JSON, empty for scopes that narrow nothing.
func (s *Scopes) String() string {
	if s.Empty() {
		return ""
	}
	// Lists of texts can always be written.
	raw, _ := json.Marshal(s)
	return string(raw)
}

// ReadScopes reads what String wrote; nil for nothing.
func ReadScopes(text string) (*Scopes, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no scopes are no fault
	}
	s := &Scopes{}
	return s, json.Unmarshal([]byte(text), s)
}
