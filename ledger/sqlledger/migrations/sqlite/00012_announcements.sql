-- Announcements of campaigns to followers.

-- +goose Up
-- Followers by rank: the higher is told first, and of equals the one who has followed
-- longest.
DROP INDEX followers_by_standing;
CREATE INDEX followers_by_rank ON followers (merchant, follows, standing DESC, seq);

-- The followers who are told, and how far that is: those who followed with a seq up to up_to, of
-- the first up to first_to, of the others up to rest_to. These places move in the
-- transaction that writes the followers to the feed. One process does it, by a
-- lease; the places keep it right without. active is the campaign while it is
-- running or paused: there is one of each then.
CREATE TABLE announcements (
    number      INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT    NOT NULL UNIQUE,
    campaign    INTEGER NOT NULL REFERENCES campaigns (number),
    active      INTEGER UNIQUE,
    campaign_id TEXT    NOT NULL,
    merchant    TEXT    NOT NULL REFERENCES merchants (id),
    message     TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
    why         TEXT    NOT NULL,
    threshold   INTEGER NOT NULL CHECK (threshold >= 0),
    first_most  INTEGER NOT NULL CHECK (first_most >= 0),
    rate        INTEGER NOT NULL CHECK (rate > 0),
    followers   INTEGER NOT NULL CHECK (followers >= 0),
    up_to       INTEGER NOT NULL,
    enqueued    INTEGER NOT NULL CHECK (enqueued >= 0 AND enqueued <= followers),
    events      INTEGER NOT NULL,
    first_to    INTEGER NOT NULL,
    first_done  INTEGER NOT NULL CHECK (first_done IN (0, 1)),
    rest_to     INTEGER NOT NULL,
    paced_at    INTEGER NOT NULL,
    owner       TEXT    NOT NULL,
    lease_until INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL
) STRICT;

CREATE INDEX announcements_by_campaign ON announcements (campaign, number);
CREATE INDEX announcements_by_state ON announcements (state, number);

-- The first by rank, while an announcement is active, by the seq that they follow
-- with: who follows no longer, or anew, has another one.
CREATE TABLE announcement_firsts (
    announcement INTEGER NOT NULL REFERENCES announcements (number),
    seq          INTEGER NOT NULL,
    PRIMARY KEY (announcement, seq)
) STRICT, WITHOUT ROWID;

-- The rows of the feed that tell an announcement, for as long as the feed has
-- them.
CREATE TABLE announcement_rows (
    feed_row     INTEGER NOT NULL PRIMARY KEY,
    announcement INTEGER NOT NULL REFERENCES announcements (number),
    recipients   INTEGER NOT NULL
) STRICT;

CREATE INDEX announcement_rows_by_announcement ON announcement_rows (announcement, feed_row);

-- +goose Down
DROP TABLE announcement_rows;
DROP TABLE announcement_firsts;
DROP TABLE announcements;
DROP INDEX followers_by_rank;
CREATE INDEX followers_by_standing ON followers (merchant, follows, standing, user_id);
