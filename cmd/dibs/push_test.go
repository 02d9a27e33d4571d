package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dibs-dev/dibs/client"
	"github.com/dibs-dev/dibs/httpapi"
	"github.com/dibs-dev/dibs/internal/cli/clitest"

	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/events"
)

// TestPushKilled kills a server twice while it tells a campaign to followers, at
// any moment: each of them is in one event, and a connected follower is told.
func TestPushKilled(t *testing.T) {
	p := &pushes{followers: 5000, rate: 2500}
	if os.Getenv("SOAK") != "" {
		p.followers, p.rate = 200_000, 20_000
	}
	seed := killSeed(t)
	t.Logf("seed %d", seed)
	p.crashes = &crashes{t: t, r: rand.New(rand.NewPCG(seed, 0)), data: t.TempDir()}
	p.restart()
	var file strings.Builder
	for i := range p.followers {
		fmt.Fprintf(&file, "f%d,%d\n", i, i%7)
	}
	execute(t, clitest.Secrets, "follower", "import", clitest.WriteFile(t, "followers.csv", file.String()), "--merchant", "shop", "--url", p.url).Want(t, 0, "imported")
	p.announce()
	for kills := 0; kills < 2; {
		least := int64(p.r.IntN(p.followers / 2))
		v := p.await(func(v *announce.AnnouncementView) bool {
			return v.Enqueued > least || v.State == announce.AnnouncementDone
		})
		if v.State == announce.AnnouncementDone {
			// On a busy machine it is seen too late, and another one is killed.
			p.announce()
			continue
		}
		moment := time.NewTimer(time.Duration(p.r.IntN(400)) * time.Millisecond)
		<-moment.C
		p.server.kill()
		p.restart()
		kills++
		t.Logf("killed after %d of %d", v.Enqueued, v.Followers)
	}
	if v := p.await(func(v *announce.AnnouncementView) bool { return v.State == announce.AnnouncementDone }); v.Enqueued != int64(p.followers) {
		t.Errorf("%+v", v)
	}
	told := p.deliveries()
	for _, a := range p.announced {
		for i := range p.followers {
			if id := events.DeliveryID(a, fmt.Sprintf("f%d", i)); told[id] != 1 {
				t.Fatalf("%s was told %d times", id, told[id])
			}
		}
	}
	if len(told) != len(p.announced)*p.followers {
		t.Errorf("%d deliveries of %d announcements to %d followers", len(told), len(p.announced), p.followers)
	}
	p.tellsOne()
}

// pushes is a server that is killed while it tells followers.
type pushes struct {
	*crashes
	followers, rate int
	// announced are the ids of announcements, the last one at work.
	announced []string
}

// announce announces a campaign that is new.
func (p *pushes) announce() {
	p.t.Helper()
	id := fmt.Sprintf("noon-%d", len(p.announced))
	clitest.Publish(p.t, clitest.Admin(p.t, p.url), id, 10)
	threshold, first, rate := int64(1000), int64(700), int64(p.rate)
	_, err := clitest.Admin(p.t, p.url).Announcements.Create(p.t.Context(), id, announce.AnnouncementSpec{
		ID: id, Merchant: "shop", Threshold: &threshold, First: &first, Rate: &rate, Message: "at noon",
	}, "")
	if err != nil {
		p.t.Fatal(err)
	}
	p.announced = append(p.announced, id)
}

// await waits until the last announcement is as it should be.
func (p *pushes) await(holds func(*announce.AnnouncementView) bool) (v announce.AnnouncementView) {
	p.t.Helper()
	api := clitest.Admin(p.t, p.url)
	p.until("announcement", func() (string, bool) {
		var err error
		if v, err = api.Announcements.Get(p.t.Context(), p.announced[len(p.announced)-1]); err != nil {
			p.t.Fatal(err)
		}
		return fmt.Sprintf("%+v", v), holds(&v)
	})
	return v
}

// deliveries counts how often each delivery is in the events of announcements.
func (c *pushes) deliveries() map[string]int {
	c.t.Helper()
	api, found := clitest.Admin(c.t, c.url), map[string]int{}
	for after := int64(0); ; {
		list, next, err := api.Events.After(c.t.Context(), after)
		if err != nil {
			c.t.Fatal(err)
		}
		for i := range list {
			var data events.PushEventData
			if list[i].Type != events.EventTypeAnnounced {
				continue
			}
			if err := json.Unmarshal(list[i].Data, &data); err != nil {
				c.t.Fatal(err)
			}
			for _, r := range data.Recipients {
				found[r.DeliveryID]++
			}
		}
		if next == after {
			return found
		}
		after = next
	}
}

// tellsOne announces another campaign, and waits until a follower is told.
func (c *pushes) tellsOne() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	token, err := httpapi.IssueToken([]byte(clitest.Secret), "f1", time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	api, err := client.New(c.url, client.Options{Token: token})
	if err != nil {
		c.t.Fatal(err)
	}
	defer api.CloseIdle()
	heard := make(chan events.AnnouncedView, 1)
	conn, err := api.Connect(ctx, client.ConnOptions{OnAnnouncement: func(a events.AnnouncedView) { heard <- a }})
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	clitest.Publish(c.t, clitest.Admin(c.t, c.url), "later", 10)
	rate := int64(announce.MaxPushRate)
	if _, err := clitest.Admin(c.t, c.url).Announcements.Create(ctx, "later", announce.AnnouncementSpec{ID: "later", Merchant: "shop", Rate: &rate}, ""); err != nil {
		c.t.Fatal(err)
	}
	select {
	case a := <-heard:
		if a.DeliveryID != "later:f1" || a.CampaignID != "later" {
			c.t.Errorf("%+v", a)
		}
	case <-ctx.Done():
		c.t.Error("the follower heard nothing")
	}
}
