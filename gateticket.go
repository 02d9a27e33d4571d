package dibs

import "time"

// TicketSpec makes a claim carry a ticket, which is handed out from the opening
// on.
type TicketSpec struct {
	// Lifetime is how long a ticket is good for.
	Lifetime Duration `json:"lifetime" doc:"how long a ticket is good for, such as 2m"`
}

// MaxTicketLifetime is the longest that a ticket may be good for.
const MaxTicketLifetime = time.Hour

// faults lists what is wrong with a campaign's tickets.
func (t *TicketSpec) faults(field string) []Fault {
	if d := t.Lifetime.std(); d < time.Second || d > MaxTicketLifetime {
		return []Fault{{field + "/lifetime", Textf("must be from 1s to %s", "必须在 1s 到 %s 之间", MaxTicketLifetime)}}
	}
	return nil
}
