package httpapi

import (
	"context"
	"net/http"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/access"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/api"
)

// Announcements is what the handlers of announcements call. ErrNotFound for an id
// without one; *dibs.Error of InvalidRequest or InvalidState.
type Announcements interface {
	// Create starts to tell a campaign to the followers of a merchant; ErrAlreadyExists.
	Create(ctx context.Context, campaignID string, spec announce.AnnouncementSpec) (*announce.Announcement, error)
	List(ctx context.Context, campaignID string, page dibs.Page) (dibs.List[announce.Announcement], error)
	// Get shows how many followers each sink of the events has taken.
	Get(ctx context.Context, id string) (announce.AnnouncementView, error)
	// Pause stops the queue of followers until Resume. Like the
	// others, it may be repeated.
	Pause(ctx context.Context, id string) (*announce.Announcement, error)
	Resume(ctx context.Context, id string) (*announce.Announcement, error)
	// Cancel ends it: followers who are still in the queue are not told.
	Cancel(ctx context.Context, id string) (*announce.Announcement, error)
	// Threshold proposes a threshold that covers so many percent of the merchants.
	Threshold(ctx context.Context, cover float64) (announce.ThresholdView, error)
}

// announcement is an operation on announcements. A key that may publish a campaign
// may announce it.
func announcement(method, path, id, summary, description string) operation {
	op := operation{method: method, path: path, id: id, tag: tagAdmin, access: adminOnly, summary: summary, description: description}
	if method != http.MethodGet {
		op.role = access.RolePublisher
	}
	return op
}

// registerAnnouncements adds the routes that announce campaigns to followers.
// Steps of an announcement may be repeated; the service says what its state allows.
func registerAnnouncements(a *routes, announcements Announcements, campaigns Campaigns) {
	subject(a, "/v1/announcements/{id}", announcements.Get)
	create := announcement(http.MethodPost, "/v1/campaigns/{id}/announcements", "announce-campaign", "Announce a campaign to followers",
		"All followers of a merchant at once when they are `threshold` or fewer; else the `first` by rank at once, and the others at `rate` a second. "+
			"They are in events of the type dev.dibs.campaign.announced, and clients that are connected receive it.")
	create.status, create.example = http.StatusCreated, `{"threshold":10000,"first":1000,"rate":500,"message":"200 phones, today at noon"}`
	view := viewOf((*announce.Announcement).View)
	change(a, create, func(ctx context.Context, c *call, in *PathID, spec *announce.AnnouncementSpec) (announce.AnnouncementView, error) {
		if spec.Merchant != "" && c.caller.scopes.OnThings() {
			campaign, err := campaigns.Now(ctx, in.ID)
			if err == nil {
				err = mayName(c.caller.scopes, campaign, spec.Merchant)
			}
			if err != nil {
				return announce.AnnouncementView{}, err
			}
		}
		v, err := view(announcements.Create(ctx, in.ID, *spec))
		return v, c.located("/v1/announcements/", v.ID, err)
	})
	register(a, announcement(http.MethodGet, "/v1/campaigns/{id}/announcements", "list-announcements", "List the announcements of a campaign, the newest first", ""),
		func(ctx context.Context, _ *call, in *idPage) (api.ListView[announce.AnnouncementView], error) {
			return listOf((*announce.Announcement).View)(announcements.List(ctx, in.ID, in.page()))
		})
	register(a, announcement(http.MethodGet, "/v1/merchants/threshold", "propose-threshold", "Propose the threshold of announcements",
		"From how many followers the merchants have: the lowest threshold that covers `cover` percent of them. The settings keep the one in use."),
		func(ctx context.Context, _ *call, in *struct {
			Cover float64 `query:"cover" default:"99" minimum:"0" maximum:"100" doc:"the percentage of the merchants to cover"`
		},
		) (announce.ThresholdView, error) {
			return announcements.Threshold(ctx, in.Cover)
		})
	register(a, announcement(http.MethodGet, "/v1/announcements/{id}", "get-announcement", "Show an announcement and how far it is", ""), byID(announcements.Get))
	for _, action := range []struct {
		verb, summary, description string
		do                         func(context.Context, string) (*announce.Announcement, error)
	}{
		{"pause", "Pause an announcement until it is resumed", "Events that are written already go out.", announcements.Pause},
		{"resume", "Resume an announcement that was paused", "", announcements.Resume},
		{"cancel", "End an announcement", "Followers who are not in an event yet will not be told.", announcements.Cancel},
	} {
		change(a, announcement(http.MethodPost, "/v1/announcements/{id}/"+action.verb, action.verb+"-announcement", action.summary, action.description),
			actionByID(func(ctx context.Context, id string) (announce.AnnouncementView, error) {
				return view(action.do(ctx, id))
			}))
	}
}
