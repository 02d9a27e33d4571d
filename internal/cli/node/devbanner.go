package node

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/embedded"
	"github.com/dibs-dev/dibs/sqlledger"

	"github.com/dibs-dev/dibs/internal/cli"
)

// banner is what dev tells at its start.
type banner struct {
	version    string
	url        string
	engine     string
	data       string
	ledger     string
	temporary  bool
	key        string
	durability string
	campaigns  []dibs.CampaignView
}

// database names the kind of database at an address.
func database(address string) string {
	switch kind, _, _ := strings.Cut(address, ":"); kind {
	case "mysql", "mariadb":
		return "MySQL"
	case "postgres", "postgresql":
		return "PostgreSQL"
	}
	return "SQLite"
}

// engineKind names the kind of engine.
func (b *banner) engineKind() string {
	if b.engine == embedded.Memory {
		return b.engine
	}
	return "Redis"
}

// promised says what a yes survives at each level.
var promised = map[string]string{
	dibs.LevelNone:       "a yes survives nothing",
	dibs.LevelRelaxed:    "a yes survives a crash, and after a power cut all but the last two seconds do",
	dibs.LevelDurable:    "a yes is on the disk before it is said",
	dibs.LevelReplicated: "a yes is on the master's disk and with every replica before it is said",
	dibs.LevelLedgered:   "a yes is in the ledger before it is said",
}

// print writes the banner. The curl lines stand at the margin, so that they can
// be pasted.
func (b *banner) print(out io.Writer) {
	p := cli.PaintFor(out)
	fmt.Fprintf(out, "\n%s %s · %s engine, %s ledger · %s: %s\n\n",
		p.Bold("dibs"), b.version, b.engineKind(), database(b.ledger), b.durability, promised[b.durability])
	data, kept := b.data, "kept"
	switch {
	case sqlledger.InServer(b.ledger):
		data = sqlledger.Place(b.ledger)
	case b.temporary:
		kept = "removed at the end; --data DIR keeps it"
	}
	for _, l := range [][2]string{
		{"API", b.url},
		{"Docs", b.url + "/docs"},
		{"Page", b.url + "/c/" + demoSale + "#token=dev_42"},
		{"Health", b.url + "/healthz"},
		{"Metrics", b.url + "/metrics"},
		{"Admin key", b.key},
		{"Users", "the token dev_42 is user 42; here only, dibs serve refuses it"},
		{"Data", data + " (" + kept + ")"},
	} {
		fmt.Fprintf(out, "  %s %s\n", p.Dim(fmt.Sprintf("%-10s", l[0])), l[1])
	}
	fmt.Fprintf(out, "\n%s\n\n", p.Bold("Campaigns"))
	b.printCampaigns(out)
	fmt.Fprintf(out, "\n%s\n", p.Bold("Try"))
	for _, l := range b.lines() {
		fmt.Fprintf(out, "\n%s\n%s\n", p.Dim("# "+l.what), l.curl)
	}
	fmt.Fprintf(out, "\nCtrl-C stops.\n\n")
}

func (b *banner) printCampaigns(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range b.campaigns {
		price := ""
		if c.Price != nil {
			price = c.Price.Digits() + " " + c.Price.Currency
		}
		fmt.Fprintf(w, "  %s\t%s\t%d left\t%s\t%s\n", c.ID, c.Kind, c.Remaining, standing(&c, time.Now()), price)
	}
	// The writer beneath has reported what it could; there is nobody else to tell.
	_ = w.Flush()
}

// standing says in words where a campaign stands.
func standing(c *dibs.CampaignView, now time.Time) string {
	switch {
	case c.State == dibs.EndedState || !now.Before(c.EndsAt):
		return "ended"
	case c.State != dibs.Published:
		return string(c.State)
	case now.Before(c.StartsAt):
		return "starts " + c.StartsAt.Local().Format("Mon 15:04")
	}
	return "open until " + c.EndsAt.Local().Format("Mon 15:04")
}

// curlLine is a command to paste, and what it shows.
type curlLine struct{ what, curl string }

// lines are the commands to paste.
func (b *banner) lines() []curlLine {
	get := func(path, token string) string {
		return fmt.Sprintf(`curl -sS -w '\n' -H 'Authorization: Bearer %s' %s%s`, token, b.url, path)
	}
	claim := func(campaign, token string) string {
		return strings.Replace(get("/v1/campaigns/"+campaign+"/claims", token), "curl -sS", "curl -sS -X POST", 1)
	}
	return []curlLine{
		{"user 42 gets a phone; once more, and the limit of one holds", claim(demoSale, "dev_42")},
		{"user 42 gets a coupon, with its code", claim(demoCoupon, "dev_42")},
		{"tomorrow's tickets are refused today", claim(demoLater, "dev_42")},
		{"what user 42 has", get("/v1/me/claims", "dev_42")},
		{"the sale's numbers, for admins", get("/v1/campaigns/"+demoSale+"/stats", b.key)},
		{"user 42 grabs a share of a red packet", claim(demoPacket, "dev_42")},
		{"it is on the account of user 42 within a second", get("/v1/me/balance", "dev_42")},
	}
}
