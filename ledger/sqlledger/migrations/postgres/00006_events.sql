-- The feed of events, its sinks and webhooks; migrations/sqlite says what the tables are for.

-- +goose Up
CREATE TABLE feed_head (
    one     SMALLINT NOT NULL PRIMARY KEY CHECK (one = 1),
    last_id BIGINT   NOT NULL CHECK (last_id >= 0)
);

INSERT INTO feed_head (one, last_id) VALUES (1, 0);

CREATE TABLE feed (
    id      BIGINT NOT NULL PRIMARY KEY,
    kind    TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    payload BYTEA  NOT NULL
);

CREATE TABLE sinks (
    name        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    taken       BIGINT  NOT NULL CHECK (taken >= 0),
    owner       TEXT    NOT NULL,
    lease_until BIGINT  NOT NULL,
    seen_at     BIGINT  NOT NULL,
    published   BIGINT  NOT NULL,
    failures    INTEGER NOT NULL,
    problem     TEXT    NOT NULL
);

CREATE TABLE webhook_endpoints (
    id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    url             TEXT     NOT NULL,
    description     TEXT     NOT NULL,
    types           TEXT     NOT NULL,
    secret          TEXT     NOT NULL,
    old_secret      TEXT     NOT NULL,
    old_until       BIGINT   NOT NULL,
    disabled        SMALLINT NOT NULL CHECK (disabled IN (0, 1)),
    disabled_reason TEXT     NOT NULL,
    version         BIGINT   NOT NULL,
    created_at      BIGINT   NOT NULL,
    updated_at      BIGINT   NOT NULL
);

CREATE TABLE webhook_deliveries (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    endpoint   TEXT COLLATE "C" NOT NULL REFERENCES webhook_endpoints (id),
    event_id   TEXT COLLATE "C" NOT NULL,
    type       TEXT     NOT NULL,
    subject    TEXT COLLATE "C" NOT NULL,
    body       BYTEA    NOT NULL,
    status     TEXT     NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts   INTEGER  NOT NULL,
    next_at    BIGINT   NOT NULL,
    answer     INTEGER  NOT NULL,
    problem    TEXT     NOT NULL,
    created_at BIGINT   NOT NULL,
    updated_at BIGINT   NOT NULL,
    UNIQUE (endpoint, event_id)
);

CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (endpoint, status, id);
CREATE INDEX webhook_deliveries_by_subject ON webhook_deliveries (endpoint, subject, id);

-- +goose Down
DROP TABLE webhook_deliveries;
DROP TABLE webhook_endpoints;
DROP TABLE sinks;
DROP TABLE feed;
DROP TABLE feed_head;
