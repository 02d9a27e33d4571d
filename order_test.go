package dibs

import (
	"testing"
	"time"
)

// A search for orders is refused by the field that cannot be searched.
func TestOrderQueryFaults(t *testing.T) {
	day := time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		query OrderQuery
		field string
	}{
		"all orders":               {OrderQuery{}, ""},
		"a seat of a campaign":     {OrderQuery{CampaignID: "concert", Code: "A1"}, ""},
		"a day":                    {OrderQuery{Since: day, Until: day.AddDate(0, 0, 1)}, ""},
		"a user with a space":      {OrderQuery{UserID: "a b"}, "/user_id"},
		"a third kind of order":    {OrderQuery{OrderType: 3}, "/order_type"},
		"a payment in two lines":   {OrderQuery{PaymentRef: "a\nb"}, "/payment_ref"},
		"a code of any campaign":   {OrderQuery{Code: "A1"}, ""},
		"a code that is none":      {OrderQuery{CampaignID: "concert", Code: "\x00"}, "/code"},
		"before there was a clock": {OrderQuery{Since: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)}, "/since"},
		"until before since":       {OrderQuery{Since: day, Until: day}, "/until"},
	} {
		fs := c.query.Faults()
		switch {
		case c.field == "" && len(fs) > 0:
			t.Errorf("%s: %v", name, fs)
		case c.field != "" && (len(fs) != 1 || fs[0].Field != c.field):
			t.Errorf("%s: %v, want one fault of %s", name, fs, c.field)
		}
	}
}
