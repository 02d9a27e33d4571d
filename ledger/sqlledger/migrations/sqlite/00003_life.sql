-- The claim's life after the grant: what happened to it, and what was paid.

-- +goose Up
-- How many events the claim has; each step compares it and raises it.
ALTER TABLE claims ADD COLUMN steps INTEGER NOT NULL DEFAULT 0 CHECK (steps >= 0);

-- Unpaid claims by their deadline: the sweep reads no others.
CREATE INDEX claims_due ON claims (pay_by) WHERE status = 0 AND pay_by > 0;

-- One row per step of a claim, from 1. It never changes.
CREATE TABLE claim_events (
    campaign INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    n        INTEGER NOT NULL CHECK (n >= 1),
    step     TEXT    NOT NULL,
    status   INTEGER NOT NULL CHECK (status IN (-1, 0, 1, 2)),
    at       INTEGER NOT NULL,
    facts    BLOB    NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq, n),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
) STRICT, WITHOUT ROWID;

-- +goose StatementBegin
CREATE TRIGGER claim_events_stay BEFORE UPDATE ON claim_events
BEGIN
    SELECT RAISE(ABORT, 'an event never changes');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER claim_events_last BEFORE DELETE ON claim_events
BEGIN
    SELECT RAISE(ABORT, 'an event is never deleted');
END;
-- +goose StatementEnd

-- What was paid for a claim, once, and what of it went back. A payment that is
-- due came too late and belongs to its payer.
CREATE TABLE payments (
    campaign INTEGER NOT NULL,
    shard    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    ref      TEXT    NOT NULL,
    amount   INTEGER NOT NULL CHECK (amount >= 0),
    currency TEXT    NOT NULL,
    refunded INTEGER NOT NULL CHECK (refunded >= 0 AND refunded <= amount),
    due      INTEGER NOT NULL CHECK (due IN (0, 1)),
    at       INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
) STRICT, WITHOUT ROWID;

-- A coupon's life: from the claim on, or until a day; 0 for no end.
ALTER TABLE campaigns ADD COLUMN valid_for_ms INTEGER NOT NULL DEFAULT 0 CHECK (valid_for_ms >= 0);
ALTER TABLE campaigns ADD COLUMN valid_until INTEGER NOT NULL DEFAULT 0 CHECK (valid_until >= 0);

-- +goose Down
ALTER TABLE campaigns DROP COLUMN valid_until;
ALTER TABLE campaigns DROP COLUMN valid_for_ms;
DROP TABLE payments;
DROP TABLE claim_events;
DROP INDEX claims_due;
ALTER TABLE claims DROP COLUMN steps;
