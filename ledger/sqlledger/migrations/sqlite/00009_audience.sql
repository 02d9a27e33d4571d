-- Who may claim, and who did what.

-- +goose Up
-- Lists of users. One version of each counts; that of an import that is still
-- being written, or was broken off, is higher.
CREATE TABLE audiences (
    id         TEXT    NOT NULL PRIMARY KEY,
    version    INTEGER NOT NULL,
    users      INTEGER NOT NULL CHECK (users >= 0),
    seed       BLOB    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Some thousand users each, compressed, in the order of their prints: what a
-- node loads, from one end to the other.
CREATE TABLE audience_parts (
    id      TEXT    NOT NULL,
    version INTEGER NOT NULL,
    part    INTEGER NOT NULL,
    users   BLOB    NOT NULL,
    PRIMARY KEY (id, version, part)
) STRICT;

-- A merchant's followers. Who changes some raises the merchant's seq first and
-- holds that row to the commit: changes are numbered in the order in which they
-- can be seen, and nodes read those after the last they know. Who does not
-- follow any more leaves a row that says so. A higher standing is told first.
CREATE TABLE merchants (
    id        TEXT    NOT NULL PRIMARY KEY,
    seq       INTEGER NOT NULL,
    followers INTEGER NOT NULL CHECK (followers >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE followers (
    merchant TEXT    NOT NULL REFERENCES merchants (id),
    user_id  TEXT    NOT NULL,
    follows  INTEGER NOT NULL CHECK (follows IN (0, 1)),
    standing INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (merchant, user_id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX followers_by_seq ON followers (merchant, seq);
CREATE INDEX followers_by_standing ON followers (merchant, follows, standing, user_id);

-- What administrators did: a row before it is done, completed by what came of it.
CREATE TABLE audit (
    id          TEXT    NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    actor_name  TEXT    NOT NULL,
    role        TEXT    NOT NULL,
    address     TEXT    NOT NULL,
    request_id  TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    status      INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    before_json TEXT    NOT NULL,
    after_json  TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_by_target ON audit (target, id);
CREATE INDEX audit_by_actor ON audit (actor, id);

-- +goose Down
DROP TABLE audit;
DROP TABLE followers;
DROP TABLE merchants;
DROP TABLE audience_parts;
DROP TABLE audiences;
