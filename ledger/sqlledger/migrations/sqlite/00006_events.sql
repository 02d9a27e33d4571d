-- The feed of events, how far each sink has read it, and webhooks.

-- +goose Up
-- The number of the feed's last row. Who writes to the feed raises it at the end
-- of the transaction and holds it until the commit: rows are numbered in the
-- order in which they can be seen, without gaps.
CREATE TABLE feed_head (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    last_id INTEGER NOT NULL CHECK (last_id >= 0)
) STRICT;

INSERT INTO feed_head (one, last_id) VALUES (1, 0);

-- One row for many grants or steps: the payload is JSON that says where they
-- are in claims and claim_events, or what became of a campaign.
CREATE TABLE feed (
    id      INTEGER NOT NULL PRIMARY KEY,
    kind    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    payload BLOB    NOT NULL
) STRICT;

-- The sinks of the feed: the last row taken, and which process does it until when.
CREATE TABLE sinks (
    name        TEXT    NOT NULL PRIMARY KEY,
    taken       INTEGER NOT NULL CHECK (taken >= 0),
    owner       TEXT    NOT NULL,
    lease_until INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    published   INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    problem     TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_endpoints (
    id              TEXT    NOT NULL PRIMARY KEY,
    url             TEXT    NOT NULL,
    description     TEXT    NOT NULL,
    types           TEXT    NOT NULL,
    secret          TEXT    NOT NULL,
    old_secret      TEXT    NOT NULL,
    old_until       INTEGER NOT NULL,
    disabled        INTEGER NOT NULL CHECK (disabled IN (0, 1)),
    disabled_reason TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One event for one endpoint, until it has kept its time.
CREATE TABLE webhook_deliveries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint   TEXT    NOT NULL REFERENCES webhook_endpoints (id),
    event_id   TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    body       BLOB    NOT NULL,
    status     TEXT    NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts   INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    answer     INTEGER NOT NULL,
    problem    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (endpoint, event_id)
) STRICT;

CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (endpoint, status, id);
CREATE INDEX webhook_deliveries_by_subject ON webhook_deliveries (endpoint, subject, id);

-- +goose Down
DROP TABLE webhook_deliveries;
DROP TABLE webhook_endpoints;
DROP TABLE sinks;
DROP TABLE feed;
DROP TABLE feed_head;
