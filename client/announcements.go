package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/dibs-dev/dibs"
	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/api"
)

// Announcements tells campaigns to the followers of a merchant, for admins.
type Announcements struct{ *caller }

// Create tells a campaign to the followers of a merchant, from now on. With a
// key, the call can be repeated.
func (c Announcements) Create(ctx context.Context, campaign string, spec announce.AnnouncementSpec, key string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c.caller, http.MethodPost, campaignPath(campaign)+"/announcements", key, spec)
}

// List lists those of a campaign, the newest first.
func (c Announcements) List(ctx context.Context, campaign string, page dibs.Page) (api.ListView[announce.AnnouncementView], error) {
	return list[announce.AnnouncementView](ctx, c.caller, campaignPath(campaign)+"/announcements", pageQuery(page), c.opts.AdminKey)
}

// Get shows one, and how far it is.
func (c Announcements) Get(ctx context.Context, id string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c.caller, http.MethodGet, announcementPath(id), "", nil)
}

// Pause stops telling followers until Resume. Repeating it changes nothing, as with
// Resume and Cancel.
func (c Announcements) Pause(ctx context.Context, id string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c.caller, http.MethodPost, announcementPath(id)+"/pause", "", nil)
}

// Resume goes on with what was paused.
func (c Announcements) Resume(ctx context.Context, id string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c.caller, http.MethodPost, announcementPath(id)+"/resume", "", nil)
}

// Cancel ends an announcement: it tells no more followers.
func (c Announcements) Cancel(ctx context.Context, id string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c.caller, http.MethodPost, announcementPath(id)+"/cancel", "", nil)
}

// Threshold proposes the threshold that covers so many percent of the merchants.
func (c Announcements) Threshold(ctx context.Context, cover float64) (announce.ThresholdView, error) {
	query := url.Values{"cover": {strconv.FormatFloat(cover, 'f', -1, 64)}}
	return get[announce.ThresholdView](ctx, c.caller, "/v1/merchants/threshold", query, c.opts.AdminKey)
}

func announcementPath(id string) string { return "/v1/announcements/" + url.PathEscape(id) }
