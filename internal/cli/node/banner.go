package node

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/internal/cli"
	"github.com/dibs-dev/dibs/ledger/sqlledger"
	"github.com/dibs-dev/dibs/node"

	"github.com/dibs-dev/dibs/api"
)

// banner is what dev prints at its start, on the output: log lines go to the error output. It shows
// an admin key and a sign-in, which only dev may: its server is on loopback.
type banner struct {
	version, url, engine, data, ledger string
	// temporary says that data is removed at the end.
	temporary bool
	key       string
	// login is the console's address, which signs in once.
	login      string
	durability string
	campaigns  []api.CampaignView
}

// database names the kind of database at an address; no address means SQLite.
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
// Any engine that is not memory is Redis, in one of its forms of address.
func (b *banner) engineKind() string {
	if b.engine == node.Memory {
		return b.engine
	}
	return "Redis"
}

// promised says what a granted claim survives at each level: docs/GUARANTEES.md in one line each.
var promised = map[string]string{
	dibs.LevelNone:       "a yes survives nothing",
	dibs.LevelRelaxed:    "a yes survives a crash, and after a power cut all but the last two seconds do",
	dibs.LevelDurable:    "a yes is on the disk before it is said",
	dibs.LevelReplicated: "a yes is on the master's disk and with every replica before it is said",
	dibs.LevelLedgered:   "a yes is in the ledger before it is said",
}

// print writes the banner. The curl lines stand at the margin, so that they can be
// copied as whole lines.
func (b *banner) print(out io.Writer) error {
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
		{"Shop", b.url + "/"},
		{"Console", b.login},
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
	fmt.Fprintf(out, "\n%s\n\n%s\n", p.Bold("For other terminals: dibs and curl find this server"), b.exports())
	fmt.Fprintf(out, "\n%s\n\n", p.Bold("Campaigns"))
	if err := b.campaignTable().Write(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", p.Bold("Try"))
	for _, l := range b.curlLines() {
		fmt.Fprintf(out, "\n%s\n%s\n", p.Dim("# "+l.what), l.curl)
	}
	// Only the last write is checked: an output that fails fails here too.
	_, err := fmt.Fprint(out, "\nCtrl-C stops.\n\n")
	return err
}

// exports is a line for a shell, after which every verb finds the server, and those that work on the
// ledger its folder. An address of a ledger in a server may hold a password, and is not shown.
func (b *banner) exports() string {
	line := "export DIBS_URL=" + shellWord(b.url) + " DIBS_ADMIN_KEY=" + shellWord(b.key)
	if b.engine == node.Memory && !sqlledger.InServer(b.ledger) {
		line += " DIBS_DATA=" + shellWord(b.data)
	}
	return line
}

// shellWord quotes a text where a shell would take it apart.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/:._-+=,@%", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// campaignTable shows the demo campaigns, indented like the lines above them.
func (b *banner) campaignTable() *cli.Table {
	t := cli.NewTable()
	for _, c := range b.campaigns {
		price := ""
		if c.Price != nil {
			price = c.Price.Digits() + " " + c.Price.Currency
		}
		// The price is shown in major units, as people write it, unlike in the API.
		t.Add("  "+c.ID, c.Kind, cli.Thousands(c.Remaining)+" left", stateText(&c, time.Now()), price)
	}
	return t
}

// stateText says in words whether a campaign is open at now, and until or from when, in local time.
// A campaign whose end has passed is shown as ended, although its state may still be published.
func stateText(c *api.CampaignView, now time.Time) string {
	switch phase := c.Phase(now); {
	case phase == dibs.PhaseEnded:
		return "ended"
	case c.State != dibs.Published:
		return string(c.State)
	case phase == dibs.PhaseUpcoming:
		return "starts " + c.StartsAt.Local().Format("Mon 15:04")
	}
	return "open until " + c.EndsAt.Local().Format("Mon 15:04")
}

// curlLine is a command to paste, and what it shows.
type curlLine struct{ what, curl string }

// curlLines returns the commands to paste. Each works as it stands, in this order: the later ones
// show what the earlier ones did.
func (b *banner) curlLines() []curlLine {
	call := func(method, token, path string) string {
		return fmt.Sprintf(`curl -sS%s -w '\n' -H 'Authorization: Bearer %s' %s%s`, method, token, b.url, path)
	}
	get := func(path string) string { return call("", "dev_42", path) }
	claim := func(campaign string) string { return call(" -X POST", "dev_42", "/v1/campaigns/"+campaign+"/claims") }
	return []curlLine{
		{"user 42 gets a phone; the second time the limit of one refuses it", claim(demoSale)},
		{"user 42 gets a coupon, with its code", claim(demoCoupon)},
		{"tomorrow's tickets are refused today", claim(demoLater)},
		{"what user 42 has", get("/v1/me/claims")},
		{"the sale's numbers, for admins", call("", b.key, "/v1/campaigns/"+demoSale+"/stats")},
		{"user 42 grabs a share of a red packet", claim(demoPacket)},
		{"it is on the account of user 42 within a second", "sleep 1; " + get("/v1/me/balance")},
	}
}
