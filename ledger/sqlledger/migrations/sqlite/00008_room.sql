-- Waiting rooms and lotteries.

-- +goose Up
-- What a lottery has fixed, in the order in which it becomes known: the seed with
-- the campaign's publishing, the list with the closing, the cutoff with the draw.
-- Hashes are hexadecimal, and empty until then; so are times, as 0.
CREATE TABLE lotteries (
    campaign     INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    seed         TEXT    NOT NULL,
    winners      INTEGER NOT NULL CHECK (winners > 0),
    committed_at INTEGER NOT NULL,
    closed_at    INTEGER NOT NULL,
    entries      INTEGER NOT NULL CHECK (entries >= 0),
    list_hash    TEXT    NOT NULL,
    public_value TEXT    NOT NULL,
    cutoff       TEXT    NOT NULL,
    drawn_at     INTEGER NOT NULL,
    version      INTEGER NOT NULL
) STRICT;

-- A registration: entry is the hash that the public list has of it.
CREATE TABLE lottery_entries (
    campaign INTEGER NOT NULL REFERENCES lotteries (campaign),
    user_id  TEXT    NOT NULL,
    entry    TEXT    NOT NULL,
    nonce    TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (campaign, user_id),
    UNIQUE (campaign, entry)
) STRICT, WITHOUT ROWID;

-- How far a waiting room is that one process keeps; those in Redis are not here.
-- early is how many came before the start, -1 before it.
CREATE TABLE rooms (
    campaign       INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    tail           INTEGER NOT NULL,
    early          INTEGER NOT NULL,
    seed           TEXT    NOT NULL,
    admitted_micro INTEGER NOT NULL,
    at             INTEGER NOT NULL
) STRICT;

CREATE TABLE room_places (
    campaign INTEGER NOT NULL REFERENCES rooms (campaign),
    number   INTEGER NOT NULL CHECK (number > 0),
    user_id  TEXT    NOT NULL,
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE room_places;
DROP TABLE rooms;
DROP TABLE lottery_entries;
DROP TABLE lotteries;
