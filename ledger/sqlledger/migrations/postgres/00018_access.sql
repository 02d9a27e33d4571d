-- A chain over the admin log, tokens that were revoked, sessions of the console, and acts that
-- wait for a second person; migrations/sqlite says what they are for.

-- +goose Up
ALTER TABLE audit ADD COLUMN chain_n BIGINT NOT NULL DEFAULT 0;

CREATE TABLE audit_chain (
    n      BIGINT NOT NULL PRIMARY KEY,
    entry  TEXT COLLATE "C" NOT NULL,
    at     BIGINT NOT NULL,
    record TEXT   NOT NULL,
    salt   TEXT   NOT NULL,
    prev   TEXT   NOT NULL,
    hash   TEXT   NOT NULL
);

CREATE INDEX audit_chain_by_entry ON audit_chain (entry);
CREATE INDEX audit_chain_by_time ON audit_chain (at);

CREATE TABLE audit_head (
    one  INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    n    BIGINT  NOT NULL,
    hash TEXT    NOT NULL
);

INSERT INTO audit_head (one, n, hash) VALUES (1, 0, '');

CREATE TABLE token_revocations (
    id            TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    jti           TEXT   NOT NULL,
    user_id       TEXT   NOT NULL,
    issued_before BIGINT NOT NULL,
    why           TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL
);

CREATE INDEX token_revocations_by_end ON token_revocations (expires_at);

CREATE TABLE console_sessions (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    key_id       TEXT COLLATE "C" NOT NULL,
    address      TEXT   NOT NULL,
    agent        TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    ended_at     BIGINT NOT NULL
);

CREATE INDEX console_sessions_by_key ON console_sessions (key_id, created_at);
CREATE INDEX console_sessions_by_end ON console_sessions (expires_at);

CREATE TABLE approvals (
    id           TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    action       TEXT    NOT NULL,
    target       TEXT    NOT NULL,
    call_json    TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    asked_by     TEXT    NOT NULL,
    asked_name   TEXT    NOT NULL,
    asked_at     BIGINT  NOT NULL,
    expires_at   BIGINT  NOT NULL,
    decided_by   TEXT    NOT NULL,
    decided_name TEXT    NOT NULL,
    decided_at   BIGINT  NOT NULL,
    why          TEXT    NOT NULL,
    status       INTEGER NOT NULL
);

CREATE INDEX approvals_by_time ON approvals (asked_at);

-- +goose Down
DROP TABLE approvals;
DROP TABLE console_sessions;
DROP TABLE token_revocations;
DROP TABLE audit_head;
DROP TABLE audit_chain;
ALTER TABLE audit DROP COLUMN chain_n;
