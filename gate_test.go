package dibs

import (
	"testing"
	"time"
)

// Tickets and audiences are refused by the field that is wrong.
func TestTicketAndAudienceFaults(t *testing.T) {
	minute := Duration(time.Minute)
	for name, c := range map[string]struct {
		faults []Fault
		field  string
	}{
		"a ticket":               {(&TicketSpec{Lifetime: minute, WorkBits: 20, HumanCheck: "https://check.example/"}).faults("/ticket"), ""},
		"that ends at once":      {(&TicketSpec{}).faults("/ticket"), "/ticket/lifetime"},
		"that lasts for days":    {(&TicketSpec{Lifetime: Duration(48 * time.Hour)}).faults("/ticket"), "/ticket/lifetime"},
		"that nobody can pay":    {(&TicketSpec{Lifetime: minute, WorkBits: maxWorkBits + 1}).faults("/ticket"), "/ticket/work_bits"},
		"checked by a script":    {(&TicketSpec{Lifetime: minute, HumanCheck: "javascript:alert(1)"}).faults("/ticket"), "/ticket/human_check"},
		"checked nowhere":        {(&TicketSpec{Lifetime: minute, HumanCheck: "/check"}).faults("/ticket"), "/ticket/human_check"},
		"a list":                 {(&AudienceSpec{List: "vip"}).faults("/audience"), ""},
		"followers":              {(&AudienceSpec{FollowersOf: "shop"}).faults("/audience"), ""},
		"nobody":                 {(&AudienceSpec{}).faults("/audience"), "/audience"},
		"a list and followers":   {(&AudienceSpec{List: "vip", FollowersOf: "shop"}).faults("/audience"), "/audience"},
		"a list without a name":  {(&AudienceSpec{List: "not an id"}).faults("/audience"), "/audience/list"},
		"followers of a comment": {(&AudienceSpec{FollowersOf: "not an id"}).faults("/audience"), "/audience/followers_of"},
	} {
		switch {
		case c.field == "" && len(c.faults) > 0:
			t.Errorf("%s: %v", name, c.faults)
		case c.field != "" && (len(c.faults) != 1 || c.faults[0].Field != c.field):
			t.Errorf("%s: %v, want one fault of %s", name, c.faults, c.field)
		}
	}
}
