-- Red packets and money: what a share is worth, and double entry.

-- +goose Up
-- What a share of a red packet is worth, in minor units; 0 for other items. The
-- value of a share is its id and its amount, as engines give it out: `17:250`.
ALTER TABLE items ADD COLUMN amount INTEGER NOT NULL DEFAULT 0 CHECK (amount >= 0);

-- One row per red packet: what was divided, and what became of the money. The
-- claims up to (credit_epoch, credit_seq) are credited; funded_at is 0 before it
-- is published, returned_at until the rest is with the sender.
CREATE TABLE packets (
    campaign       INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    sender_id      TEXT    NOT NULL,
    total_amount   INTEGER NOT NULL CHECK (total_amount > 0),
    total_currency TEXT    NOT NULL,
    share_count    INTEGER NOT NULL CHECK (share_count > 0),
    split          TEXT    NOT NULL,
    share_min      INTEGER NOT NULL CHECK (share_min > 0),
    share_max      INTEGER NOT NULL CHECK (share_max >= 0),
    funded_at      INTEGER NOT NULL CHECK (funded_at >= 0),
    returned_at    INTEGER NOT NULL CHECK (returned_at >= 0),
    credited       INTEGER NOT NULL CHECK (credited >= 0),
    returned       INTEGER NOT NULL CHECK (returned >= 0),
    credit_epoch   INTEGER NOT NULL,
    credit_seq     INTEGER NOT NULL,
    CHECK (credited + returned <= total_amount)
) STRICT;

CREATE INDEX packets_open ON packets (returned_at, funded_at);

-- What everybody has, beside the entries that it is the sum of. All accounts of a
-- currency sum to zero. Only the platform and the outside may be below zero.
CREATE TABLE accounts (
    kind     TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    currency TEXT    NOT NULL,
    balance  INTEGER NOT NULL CHECK (balance > -9007199254740992 AND balance < 9007199254740992),
    PRIMARY KEY (kind, owner, currency),
    CHECK (balance >= 0 OR kind IN ('platform', 'outside'))
) STRICT, WITHOUT ROWID;

-- Two rows per transfer, which sum to zero: side 0 is where money came from, 1
-- where it went. The key makes each transfer happen once: a red packet is funded
-- and returned once, each claim credited once (shard, epoch and seq are its place,
-- else 0), each deposit made once (by its ref; campaign is 0).
CREATE TABLE entries (
    campaign INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    what     TEXT    NOT NULL,
    ref      TEXT    NOT NULL,
    side     INTEGER NOT NULL CHECK (side IN (0, 1)),
    kind     TEXT    NOT NULL,
    owner    TEXT    NOT NULL,
    currency TEXT    NOT NULL,
    amount   INTEGER NOT NULL CHECK (side = 0 AND amount < 0 OR side = 1 AND amount > 0),
    at       INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq, what, ref, side)
) STRICT, WITHOUT ROWID;

CREATE INDEX entries_by_owner ON entries (owner, at) WHERE kind = 'user';

-- +goose StatementBegin
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'an entry never changes');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER entries_last BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ABORT, 'an entry is never deleted');
END;
-- +goose StatementEnd

-- Without statistics SQLite takes an item of a claim for as rare as an item of a
-- campaign, and reads all of the campaign's for each claim. These are of large
-- campaigns, where it matters.
ANALYZE items;
DELETE FROM sqlite_stat1 WHERE tbl = 'items';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('items', 'items', '1000000 100000 1'),
    ('items', 'sqlite_autoindex_items_2', '1000000 100000 1'),
    ('items', 'items_by_claim', '1000000 100000 100000 50000 1');
ANALYZE sqlite_schema;

-- +goose Down
DELETE FROM sqlite_stat1 WHERE tbl = 'items';
DROP TABLE entries;
DROP TABLE accounts;
DROP TABLE packets;
ALTER TABLE items DROP COLUMN amount;
