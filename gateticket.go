package dibs

import (
	"net/url"
	"time"
)

// TicketSpec makes a claim carry a ticket, which is handed out from the opening
// on. All of it may change after publishing.
type TicketSpec struct {
	// Lifetime is how long a ticket is good for.
	Lifetime Duration `json:"lifetime" doc:"how long a ticket is good for, such as 2m"`
	// WorkBits is how many leading zero bits a client has to find by trying, about
	// 2^WorkBits hashes; 0 for none.
	WorkBits int `json:"work_bits,omitempty" doc:"the proof of work that a ticket costs: about 2 to the power of so many hashes; 0 for none" minimum:"0" maximum:"32"`
	// HumanCheck is the address of a page that tells people from programs and hands
	// out vouchers; empty for none.
	HumanCheck string `json:"human_check,omitempty" doc:"the address of a page that tells people from programs and hands out vouchers; absent: none is asked for"`
}

// Limits of tickets.
const (
	// MaxTicketLifetime is the longest that a ticket may be good for.
	MaxTicketLifetime = time.Hour
	// MaxWorkBits is the most work that a ticket may cost: minutes of a telephone.
	MaxWorkBits = 32
)

// faults lists what is wrong with a campaign's tickets.
func (t *TicketSpec) faults(field string) []Fault {
	var fs []Fault
	if d := t.Lifetime.std(); d < time.Second || d > MaxTicketLifetime {
		fs = append(fs, Fault{field + "/lifetime", Textf("must be from 1s to %s", "必须在 1s 到 %s 之间", MaxTicketLifetime)})
	}
	if t.WorkBits < 0 || t.WorkBits > MaxWorkBits {
		fs = append(fs, Fault{field + "/work_bits", Textf("must be from 0 to %d", "必须在 0 到 %d 之间", MaxWorkBits)})
	}
	if t.HumanCheck != "" {
		u, err := url.Parse(t.HumanCheck)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || len(t.HumanCheck) > 2048 {
			fs = append(fs, Fault{field + "/human_check", Text{"must be the address of a page, such as https://check.example/", "必须是页面地址，例如 https://check.example/"}})
		}
	}
	return fs
}

// Challenge is work that a ticket costs: find a Nonce so that the SHA-256 of
// Challenge, a colon and the Nonce begins with Bits zero bits.
type Challenge struct {
	CampaignID string `json:"campaign_id"`
	// Challenge is bound to the user, the campaign and the time; empty when the
	// campaign asks for no work.
	Challenge string `json:"challenge,omitempty"`
	// Bits is the number of leading zero bits, 0 for no work.
	Bits int `json:"bits"`
	// HumanCheck is the page that hands out vouchers; empty when none is asked for.
	HumanCheck string     `json:"human_check,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
}

// TicketRequest asks for a ticket with what the campaign wants of it.
type TicketRequest struct {
	Challenge string `json:"challenge,omitempty" doc:"the challenge that was worked on"`
	Nonce     string `json:"nonce,omitempty" doc:"the answer to it, 1-64 visible characters"`
	Voucher   string `json:"voucher,omitempty" doc:"what the human check has handed out"`
}

// TicketView is a ticket as it is handed out.
type TicketView struct {
	CampaignID string    `json:"campaign_id"`
	Ticket     string    `json:"ticket"`
	ExpiresAt  time.Time `json:"expires_at"`
}
