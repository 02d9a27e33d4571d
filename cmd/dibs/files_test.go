package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/erasure"
	"github.com/dibs-dev/dibs/internal/cli/clitest"
	"github.com/dibs-dev/dibs/webhooks"
)

// approvals is a list of approvals as the API answers it. The server of this test asks nobody to approve.
const approvals = `{"items":[{"id":"ap-1","action":"end-campaign","target":"/v1/campaigns/mugs/end","state":"rejected","asked_by":"k-1","asked_name":"Ada",
	"asked_at":"2026-05-01T10:00:00Z","expires_at":"2026-05-01T11:00:00Z","decided_name":"Bob","decided_at":"2026-05-01T10:05:00Z","why":"too early"}]}`

// filesOfEveryList: each list of the console can be saved, and its file says in words what the screen shows.
func filesOfEveryList(s *shop) {
	s.listed()
	s.asAdmin()
	for _, c := range []struct {
		path string
		// want is what the files of the screen have, in the order of their buttons.
		want []string
	}{
		{"/gates", []string{`"filed","The filed","by arrival","Open","7 per second"`}},
		{"/audiences?merchant=filer", []string{`"filed","2",`, `"u1","1",`}},
		{"/announcements?campaign=filed", []string{`"hello","filer","done","2 / 2"`}},
		{"/users", []string{`"filed-user","`}},
		{"/events", []string{"", `"https://hooks.example/filed","`}},
		{"/keys?q=filer", []string{`"filer","editor","Campaigns: mug-*","valid","never"`}},
		{"/sessions", []string{`"127.0.0.1 Chromium"`}},
		{"/audit?target=/v1/campaigns/filed", []string{`"comment: – → now with a comment"`}},
		{"/audit?action=end-campaign", []string{`"/v1/campaigns/filed-draft/end","The present status does not allow this"`}},
		{"/health?every=1", []string{`"console_idle","`}},
	} {
		page := s.console(c.path, english)
		files := s.files(page, len(c.want))
		for i, want := range c.want {
			s.isFile(c.path, files[i], want)
		}
	}
	// A filter leaves the others out, on the screen and in the file.
	page := s.console("/keys?q=filer", english)
	page.await(`document.querySelectorAll("tbody tr").length === 1`)
	if rows := strings.Count(s.files(page, 1)[0], "\r\n"); rows != 1 {
		s.Errorf("%d keys are in the file of one", rows)
	}
	page = s.console("/", english)
	page.shows("Needs a person")
	tells[bool](page, fmt.Sprintf(`(() => {
		const real = window.fetch;
		window.fetch = (at, o) => (String(at).startsWith("/v1/approvals") ? Promise.resolve(new Response(%q)) : real(at, o));
		history.pushState(null, "", "/console/approvals?standing=rejected");
		dispatchEvent(new PopStateEvent("popstate"));
		return true;
	})()`, approvals))
	page.shows("too early")
	s.isFile("/approvals", s.files(page, 1)[0], `"ap-1","Ended","/v1/campaigns/mugs/end","Ada",`)
}

// listed makes something for every list that filesOfEveryList saves.
func (s *shop) listed() {
	s.Helper()
	ctx := s.Context()
	s.campaign("filed", func(c *dibs.CampaignSpec) { c.Gate = &dibs.GateSpec{Room: &dibs.RoomSpec{Mode: dibs.FIFO, Rate: 7}} })
	comment, units := "now with a comment", int64(1)
	s.patch("filed", dibs.CampaignPatch{Comment: &comment})
	_, err := s.admin.Campaigns.Create(ctx, dibs.CampaignSpec{ID: "filed-draft", Kind: dibs.Sale, Title: "Draft", Stock: dibs.StockSpec{Units: &units}, StartsAt: time.Now(), EndsAt: time.Now().Add(time.Hour)}, "")
	s.must(err)
	if _, err = s.admin.Campaigns.End(ctx, "filed-draft"); err == nil {
		s.Fatal("a draft has ended")
	}
	_, err = s.admin.Audiences.Import(ctx, "filed", strings.NewReader("user\n1\n2\n"), nil)
	s.must(err)
	for i := range 2 {
		s.must(s.admin.Followers.Set(ctx, "filer", fmt.Sprint("u", i), int64(i), true))
	}
	_, err = s.admin.Announcements.Create(ctx, "filed", announce.AnnouncementSpec{Merchant: "filer", Message: "hello"}, "")
	s.must(err)
	clitest.Until(s.T, "the announcement is made", func() bool {
		l, err := s.admin.Announcements.List(ctx, "filed", dibs.Page{})
		return err == nil && len(l.Items) == 1 && l.Items[0].FinishedAt != nil
	})
	_, _, err = s.admin.Erasures.Erase(ctx, "filed-user", erasure.ErasureSpec{})
	s.must(err)
	_, err = s.admin.Webhooks.Create(ctx, webhooks.EndpointSpec{URL: "https://hooks.example/filed", Description: "for files"}, "")
	s.must(err)
	_, err = s.admin.Keys.Create(ctx, access.KeySpec{Name: "filer", Role: access.RoleEditor, Scopes: &access.Scopes{Campaigns: []string{"mug-*"}}}, "")
	s.must(err)
}

// files presses every button of a screen that saves a file, and returns the files.
func (s *shop) files(page *tab, n int) []string {
	s.Helper()
	page.await(fmt.Sprintf(`!document.querySelector(".loading") && document.querySelectorAll("[data-act=csv]").length === %d`, n))
	return tells[[]string](page, `(async () => {
		const files = [], real = URL.createObjectURL;
		for (const b of document.querySelectorAll("[data-act=csv]")) {
			const file = new Promise((done) => (URL.createObjectURL = (blob) => (blob.text().then(done), real(blob))));
			b.click();
			files.push(await file);
		}
		URL.createObjectURL = real;
		return files;
	})()`)
}

// isFile reports what a file of a list lacks, and what only a program could have meant.
func (s *shop) isFile(path, text, want string) {
	s.Helper()
	if !strings.Contains(text, want) {
		s.Errorf("the file of %s lacks %s:\n%s", path, want, text)
	}
	for _, wrong := range []string{"[object", "undefined", "NaN", "Invalid"} {
		if strings.Contains(text, wrong) {
			s.Errorf("the file of %s has %s:\n%s", path, wrong, text)
		}
	}
}
