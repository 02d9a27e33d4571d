-- Who may claim, and who did what; migrations/sqlite says what the tables are for.

-- +goose Up
CREATE TABLE audiences (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    users      BIGINT NOT NULL CHECK (users >= 0),
    seed       BYTEA  NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE audience_parts (
    id      TEXT COLLATE "C" NOT NULL,
    version BIGINT  NOT NULL,
    part    INTEGER NOT NULL,
    users   BYTEA   NOT NULL,
    PRIMARY KEY (id, version, part)
);

CREATE TABLE merchants (
    id        TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seq       BIGINT NOT NULL,
    followers BIGINT NOT NULL CHECK (followers >= 0)
);

CREATE TABLE followers (
    merchant TEXT COLLATE "C" NOT NULL REFERENCES merchants (id),
    user_id  TEXT COLLATE "C" NOT NULL,
    follows  SMALLINT NOT NULL CHECK (follows IN (0, 1)),
    standing BIGINT   NOT NULL,
    since    BIGINT   NOT NULL,
    seq      BIGINT   NOT NULL,
    PRIMARY KEY (merchant, user_id)
);

CREATE UNIQUE INDEX followers_by_seq ON followers (merchant, seq);
CREATE INDEX followers_by_standing ON followers (merchant, follows, standing, user_id);

CREATE TABLE audit (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    at          BIGINT  NOT NULL,
    actor       TEXT COLLATE "C" NOT NULL,
    actor_name  TEXT    NOT NULL,
    role        TEXT    NOT NULL,
    address     TEXT    NOT NULL,
    request_id  TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    target      TEXT COLLATE "C" NOT NULL,
    status      INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    before_json TEXT    NOT NULL,
    after_json  TEXT    NOT NULL
);

CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_target ON audit (target, id);
CREATE INDEX audit_by_actor ON audit (actor, id);

-- +goose Down
DROP TABLE audit;
DROP TABLE followers;
DROP TABLE merchants;
DROP TABLE audience_parts;
DROP TABLE audiences;
