-- The embedded engine's journal, in a file of its own: a file has one writer,
-- and settling must never make a claim wait.

-- +goose Up
CREATE TABLE lease (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    owner       TEXT    NOT NULL,
    generation  INTEGER NOT NULL,
    acquired_at INTEGER NOT NULL,
    -- Rises with each reopening: a commit of known outcome.
    reopened    INTEGER NOT NULL
) STRICT;

INSERT INTO lease (id, owner, generation, acquired_at, reopened) VALUES (1, '', 0, 0, 0);

-- One row per group commit and shard. The payload comes last, so that reading
-- the other columns never touches its pages.
CREATE TABLE journal (
    id        INTEGER PRIMARY KEY,
    campaign  INTEGER NOT NULL,
    shard     INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL CHECK (last_seq >= first_seq),
    at        INTEGER NOT NULL,
    payload   BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX journal_by_place ON journal (campaign, shard, epoch, first_seq);

-- +goose Down
DROP TABLE journal;
DROP TABLE lease;
