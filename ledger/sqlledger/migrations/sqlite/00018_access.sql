-- A chain over the admin log, tokens that were revoked, sessions of the console, and acts that
-- wait for a second person.

-- +goose Up
-- chain_n is the record of the chain that says how an entry is now; 0 for an entry that is not
-- in the chain, since it was written before there was one.
ALTER TABLE audit ADD COLUMN chain_n INTEGER NOT NULL DEFAULT 0;

-- Each record has the hash of the one before it in its own: hash is the SHA-256 of prev and
-- record. It holds digests of what an erasure may change, made with the salt, which goes then.
-- Records without an entry have at 0.
CREATE TABLE audit_chain (
    n      INTEGER NOT NULL PRIMARY KEY,
    entry  TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    record TEXT    NOT NULL,
    salt   TEXT    NOT NULL,
    prev   TEXT    NOT NULL,
    hash   TEXT    NOT NULL
) STRICT;

CREATE INDEX audit_chain_by_entry ON audit_chain (entry);
CREATE INDEX audit_chain_by_time ON audit_chain (at);

-- The last record. Writers lock this row first, so that the chain has one end.
CREATE TABLE audit_head (
    one  INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    n    INTEGER NOT NULL,
    hash TEXT    NOT NULL
) STRICT;

INSERT INTO audit_head (one, n, hash) VALUES (1, 0, '');

-- Tokens that count no longer, each by its jti, or all of a user that were issued before
-- a time; until expires_at, when they have ended by themselves.
CREATE TABLE token_revocations (
    id            TEXT    NOT NULL PRIMARY KEY,
    jti           TEXT    NOT NULL,
    user_id       TEXT    NOT NULL,
    issued_before INTEGER NOT NULL,
    why           TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX token_revocations_by_end ON token_revocations (expires_at);

-- ended_at is 0 for a session that was not ended.
CREATE TABLE console_sessions (
    id           TEXT    NOT NULL PRIMARY KEY,
    key_id       TEXT    NOT NULL,
    address      TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_sessions_by_key ON console_sessions (key_id, created_at);
CREATE INDEX console_sessions_by_end ON console_sessions (expires_at);

-- An act of an administrator that another one has to approve. call_json is what will be done.
CREATE TABLE approvals (
    id           TEXT    NOT NULL PRIMARY KEY,
    action       TEXT    NOT NULL,
    target       TEXT    NOT NULL,
    call_json    TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    asked_by     TEXT    NOT NULL,
    asked_name   TEXT    NOT NULL,
    asked_at     INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    decided_by   TEXT    NOT NULL,
    decided_name TEXT    NOT NULL,
    decided_at   INTEGER NOT NULL,
    why          TEXT    NOT NULL,
    status       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_by_time ON approvals (asked_at);

-- +goose Down
DROP TABLE approvals;
DROP TABLE console_sessions;
DROP TABLE token_revocations;
DROP TABLE audit_head;
DROP TABLE audit_chain;
ALTER TABLE audit DROP COLUMN chain_n;
