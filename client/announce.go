package client

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/dibs-dev/dibs"

	"github.com/dibs-dev/dibs/announce"
	"github.com/dibs-dev/dibs/api"
)

func announcementPath(id string) string { return "/v1/announcements/" + url.PathEscape(id) }

func merchantPath(id string) string { return "/v1/merchants/" + url.PathEscape(id) }

// Announce tells a campaign to the followers of a merchant, from now on. With a
// key, the call can be repeated.
func (c *Client) Announce(ctx context.Context, campaign string, spec announce.AnnouncementSpec, key string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c, http.MethodPost, campaignPath(campaign)+"/announcements", key, spec)
}

// Announcements lists those of a campaign, the newest first.
func (c *Client) Announcements(ctx context.Context, campaign string, page dibs.Page) (l api.ListView[announce.AnnouncementView], err error) {
	_, err = c.do(ctx, request{method: http.MethodGet, path: campaignPath(campaign) + "/announcements", query: pageQuery(page), token: c.opts.AdminKey}, &l)
	return l, err
}

// Announcement shows one, and how far it is.
func (c *Client) Announcement(ctx context.Context, id string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c, http.MethodGet, announcementPath(id), "", nil)
}

// PauseAnnouncement has nobody told until ResumeAnnouncement. Repeating it
// changes nothing, as with the others.
func (c *Client) PauseAnnouncement(ctx context.Context, id string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c, http.MethodPost, announcementPath(id)+"/pause", "", nil)
}

// ResumeAnnouncement goes on with what was paused.
func (c *Client) ResumeAnnouncement(ctx context.Context, id string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c, http.MethodPost, announcementPath(id)+"/resume", "", nil)
}

// CancelAnnouncement ends an announcement: whoever is not in an event yet never
// is.
func (c *Client) CancelAnnouncement(ctx context.Context, id string) (announce.AnnouncementView, error) {
	return admin[announce.AnnouncementView](ctx, c, http.MethodPost, announcementPath(id)+"/cancel", "", nil)
}

// ImportFollowers has the users of a CSV file, `user` or `user,rank` on each
// line, follow a merchant; an *Error lists the lines that are bad, and nobody
// follows then. done, unless nil, is told now and then how many have been
// written, from another goroutine.
func (c *Client) ImportFollowers(ctx context.Context, merchant string, csv io.Reader, done func(written int64)) (v api.FollowersView, err error) {
	r := request{method: http.MethodPost, path: merchantPath(merchant) + "/followers", token: c.opts.AdminKey, file: csv, kind: "text/csv"}
	_, err = c.do(hearing(ctx, &r, done), r, &v)
	return v, err
}

// FollowerCount is how many follow a merchant.
func (c *Client) FollowerCount(ctx context.Context, merchant string) (int64, error) {
	v, err := admin[struct {
		Followers int64 `json:"followers"`
	}](ctx, c, http.MethodGet, merchantPath(merchant), "", nil)
	return v.Followers, err
}
