package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"
)

// announcementOp is an operation on announcements. Whoever may publish a campaign
// may announce it.
func (a *api) announcementOp(method, path, id, summary, description string) operation {
	op := operation{
		method: method, path: path, id: id, tag: tagAdmin, access: adminOnly,
		summary: summary, description: description, maxBody: a.cfg.MaxBody,
	}
	if method != http.MethodGet {
		op.role = dibs.RolePublisher
	}
	return op
}

func (a *api) registerAnnouncements() {
	create := a.announcementOp(http.MethodPost, "/v1/campaigns/{id}/announcements", "announce-campaign", "Tell a campaign to followers",
		"All followers of a merchant at once when they are `threshold` or fewer; else the `first` by rank at once, and the others at `rate` a second. "+
			"They are in events of the type dev.dibs.campaign.announced, and connected clients hear it.")
	create.status, create.example = http.StatusCreated, `{"threshold":10000,"first":1000,"rate":500,"message":"200 phones, today at noon"}`
	change(a, create, func(ctx context.Context, c *call, in *PathID, spec *dibs.AnnouncementSpec) (dibs.AnnouncementView, error) {
		v, err := announcementView(a.svc.Announce(ctx, in.ID, *spec))
		if err == nil {
			c.Header().Set("Location", "/v1/announcements/"+v.ID)
		}
		return v, err
	})
	register(a, a.announcementOp(http.MethodGet, "/v1/campaigns/{id}/announcements", "list-announcements", "List the announcements of a campaign, the newest first", ""),
		func(ctx context.Context, _ *call, in *struct {
			PathID
			PageQuery
		},
		) (dibs.ListView[dibs.AnnouncementView], error) {
			l, err := a.svc.Announcements(ctx, in.ID, in.page())
			return listOf(l, (*dibs.Announcement).View), err
		})
	register(a, a.announcementOp(http.MethodGet, "/v1/announcements/{id}", "get-announcement", "Show an announcement and how far it is", ""),
		func(ctx context.Context, _ *call, in *PathID) (dibs.AnnouncementView, error) {
			return a.svc.Announcement(ctx, in.ID)
		})
	for _, act := range []struct {
		verb, summary, description string
		do                         func(context.Context, string) (*dibs.Announcement, error)
	}{
		{"pause", "Have nobody told until it is resumed", "Events that are written already go out.", a.svc.PauseAnnouncement},
		{"resume", "Go on with an announcement that was paused", "", a.svc.ResumeAnnouncement},
		{"cancel", "End an announcement", "Whoever is not in an event yet never is.", a.svc.CancelAnnouncement},
	} {
		change(a, a.announcementOp(http.MethodPost, "/v1/announcements/{id}/"+act.verb, act.verb+"-announcement", act.summary, act.description),
			func(ctx context.Context, _ *call, in *PathID, _ *noBody) (dibs.AnnouncementView, error) {
				return announcementView(act.do(ctx, in.ID))
			})
	}
}

func announcementView(a *dibs.Announcement, err error) (dibs.AnnouncementView, error) {
	if err != nil {
		return dibs.AnnouncementView{}, err
	}
	return a.View(), nil
}
