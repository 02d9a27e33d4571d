package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/gate/room"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
)

// emulated is a command of the browser's protocol as a step.
func emulated[P any, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, command, params)
		return chromedp.Void{}, err
	}
}

func decode(raw string, v any) error { return json.Unmarshal([]byte(raw), v) }

// file chooses a file of a text.
func (p *tab) file(name, text string) {
	p.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		p.Fatal(err)
	}
	p.await(`!!document.querySelector("input[type=file]")`)
	tells[bool](p, fmt.Sprintf(`(() => {
		const d = new DataTransfer();
		d.items.add(new File([%s], %q, { type: "text/csv" }));
		const f = [...document.querySelectorAll("input[type=file]")].find((f) => f.checkVisibility());
		f.files = d.files;
		f.dispatchEvent(new Event("change", { bubbles: true }));
		return true;
	})()`, raw, name))
}

// published is what a server tells of a draw, in the words of the API.
type published struct {
	Seed        string `json:"seed"`
	SeedHash    string `json:"seed_hash"`
	ListHash    string `json:"list_hash"`
	PublicValue string `json:"public_value"`
	Key         string `json:"key"`
	Cutoff      string `json:"cutoff"`
	Winners     int64  `json:"winners"`
	Entries     int64  `json:"entries"`
}

// drawnAgain: the browser draws a lottery again as `dibs lottery verify` does, and both find the same faults in draws that
// are none.
func drawnAgain(s *shop) {
	s.asAdmin()
	draw, nonce := s.registered("draw", 14*time.Second, 5, dibs.RoomSpec{Winners: 2})
	valued, _ := s.registered("valued", 14*time.Second, 4, dibs.RoomSpec{PublicValue: "the index at noon", PublicValueFormat: "decimal:2"})
	s.valueTold(valued)
	page := s.console("/gates/"+draw, english)
	page.click("Draw again in this browser")
	page.await(`document.querySelector("#again")?.dataset.state === "good"`)
	page.shows("The draw is right: 5 registrations, 2 winners")
	page.fill("user", "u4")
	page.fill("nonce", nonce)
	page.click("Look for it")
	page.await(`/^It has (not )?won$/.test(document.querySelector("#again form .tag")?.textContent)`)
	r := clitest.Run(s.T, []string{"DIBS_ADMIN_KEY=" + s.server.await(s.T, s.server.out, `Admin key +(\S+)`)[1]}, "lottery", "verify", draw, "--url", s.url, "--user", "u4", "--nonce", nonce, "--output", "json")
	var cli struct{ Mine string }
	s.must(decode(r.Out, &cli))
	shown := tells[string](page, `document.querySelector("#again form .tag").textContent`)
	if r.Code != 0 || (cli.Mine == "won") != (shown == "It has won") {
		s.Errorf("the command line says %s (%s), the browser %q", r.Out, r.Err, shown)
	}
	random := rand.New(rand.NewPCG(15, 1))
	for i := range 40 {
		list, p := fakeDraw(random, i)
		agree(page, list, p)
	}
}

// valueTold: an administrator gives a draw the public value that it waits for, which a publisher may not; the draw with the
// value is drawn again, and the campaign's history has who gave it.
func (s *shop) valueTold(valued string) {
	s.Helper()
	s.enter(s.key("announcer", access.RolePublisher))
	page := s.console("/gates/"+valued, english)
	page.shows("decimal:2")
	page.shows("The draw waits for a public value: the index at noon")
	if tells[bool](page, `!!document.querySelector("[data-act=tell]")`) {
		s.Error("a publisher is offered what needs an administrator")
	}
	s.asAdmin()
	page = s.console("/gates/"+valued, english)
	page.act("tell", "")
	page.answer("value", "3888.60")
	page.click("Draw again in this browser")
	page.await(`document.querySelector("#again")?.dataset.state === "good"`)
	page.shows("3888.60")
	s.console("/campaigns/"+valued, english).shows("Gave the public value")
}

// fakeDraw makes a draw; all but every fourth have one fault.
func fakeDraw(random *rand.Rand, n int) (list []string, p published) {
	for range random.IntN(40) {
		list = append(list, room.EntryHash("c", fmt.Sprint(random.Int64()), "n").String())
	}
	slices.Sort(list)
	var seed room.Sum
	for i := range seed {
		seed[i] = byte(random.Uint32())
	}
	p = published{Seed: seed.String(), Winners: int64(1 + random.IntN(20)), PublicValue: []string{"", "3888.6"}[n%2]}
	drawn, err := room.DrawAgain(strings.NewReader(lines(list)), p.of())
	if err != nil {
		panic(err)
	}
	// What the draw finds is what an honest server would have published.
	p.SeedHash, p.Entries = room.SeedHash(seed).String(), drawn.Entries
	hasher := room.NewListHasher()
	tickets := make([]room.Sum, len(list))
	for _, e := range list {
		entry, _ := room.ParseSum(e)
		_ = hasher.Add(entry)
	}
	key := room.DrawKey(seed, hasher.Sum(), p.PublicValue)
	for i, e := range list {
		entry, _ := room.ParseSum(e)
		tickets[i] = room.TicketOf(key, entry)
	}
	p.ListHash, p.Key, p.Cutoff = hasher.Sum().String(), key.String(), room.Cutoff(tickets, p.Winners).String()
	other := strings.Repeat("0", 63) + "1"
	switch fault := n % 8; {
	case n%4 == 0:
	case fault == 1:
		p.SeedHash = other
	case fault == 2:
		p.ListHash = other
	case fault == 3:
		p.Key, p.Cutoff = other, other
	case fault == 5:
		p.Winners = 0
	case fault == 6:
		p.Entries++
	case fault == 7 && len(list) > 1:
		list[0], list[1] = list[1], list[0]
	}
	return list, p
}

func (p published) of() room.Published {
	return room.Published{Seed: p.Seed, SeedHash: p.SeedHash, ListHash: p.ListHash, PublicValue: p.PublicValue, Key: p.Key, Cutoff: p.Cutoff, Winners: p.Winners, Entries: p.Entries}
}

// lines is a closed list as a server sends it.
func lines(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, "\n") + "\n"
}

// kinds are the browser's names of what differs, by the beginning of what the command line says.
var kinds = map[string]string{
	"the hash of the seed": "seed", "the hash of the list": "list", "the number of entries": "entries", "the key": "key", "the number of winners": "winners", "the cutoff": "cutoff",
}

// agree holds a draw of the browser against that of room.DrawAgain, which the command line calls.
func agree(page *tab, list []string, p published) {
	page.Helper()
	text, err := json.Marshal(lines(list))
	if err != nil {
		page.Fatal(err)
	}
	asked, err := json.Marshal(p)
	if err != nil {
		page.Fatal(err)
	}
	got := tells[string](page, fmt.Sprintf(`(async () => {
		const at = document.querySelector('script[type=module]').src.replace("main.js", "draw.js");
		try {
			const d = await (await import(at)).drawAgain(%s, %s);
			return JSON.stringify({ winners: d.winners, differ: d.differences.map((x) => x.what) });
		} catch (e) {
			return JSON.stringify({ winners: [], differ: ["unreadable"] });
		}
	})()`, text, asked))
	want := struct {
		Winners []string `json:"winners"`
		Differ  []string `json:"differ"`
	}{[]string{}, []string{}}
	drawn, err := room.DrawAgain(strings.NewReader(lines(list)), p.of())
	if err != nil {
		want.Differ = []string{"unreadable"}
	} else {
		for _, w := range drawn.Winners {
			want.Winners = append(want.Winners, w.String())
		}
		for _, problem := range drawn.Problems {
			is := problem
			for begin, kind := range kinds {
				if strings.HasPrefix(problem, begin+" ") {
					is = kind
				}
			}
			want.Differ = append(want.Differ, is)
		}
	}
	raw, err := json.Marshal(want)
	if err != nil {
		page.Fatal(err)
	}
	if got != string(raw) {
		page.Errorf("the browser draws %s, the command line %s; of %d entries, %+v", got, raw, len(list), p)
	}
}
