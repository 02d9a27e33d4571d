-- The claim's life after the grant: what happened to it, and what was paid.

-- +goose Up
-- How many events the claim has; each step compares it and raises it.
ALTER TABLE claims ADD COLUMN steps INTEGER NOT NULL DEFAULT 0 CHECK (steps >= 0);

-- Unpaid claims by their deadline: the sweep reads no others.
CREATE INDEX claims_due ON claims (pay_by) WHERE status = 0 AND pay_by > 0;

-- One row per step of a claim, from 1. It never changes.
CREATE TABLE claim_events (
    campaign INTEGER  NOT NULL,
    shard    SMALLINT NOT NULL,
    epoch    SMALLINT NOT NULL,
    seq      BIGINT   NOT NULL,
    n        INTEGER  NOT NULL CHECK (n >= 1),
    step     TEXT     NOT NULL,
    status   SMALLINT NOT NULL CHECK (status IN (-1, 0, 1, 2)),
    at       BIGINT   NOT NULL,
    facts    BYTEA    NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq, n),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
);

-- +goose StatementBegin
CREATE FUNCTION claim_events_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an event never changes' USING ERRCODE = 'check_violation';
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER claim_events_stay BEFORE UPDATE OR DELETE ON claim_events FOR EACH ROW EXECUTE FUNCTION claim_events_stay();

-- What was paid for a claim, once, and what of it went back. A payment that is
-- due came too late and belongs to its payer.
CREATE TABLE payments (
    campaign INTEGER  NOT NULL,
    shard    SMALLINT NOT NULL,
    epoch    SMALLINT NOT NULL,
    seq      BIGINT   NOT NULL,
    ref      TEXT COLLATE "C" NOT NULL,
    amount   BIGINT   NOT NULL CHECK (amount >= 0),
    currency TEXT     NOT NULL,
    refunded BIGINT   NOT NULL CHECK (refunded >= 0 AND refunded <= amount),
    due      SMALLINT NOT NULL CHECK (due IN (0, 1)),
    at       BIGINT   NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
);

-- A coupon's life: from the claim on, or until a day; 0 for no end.
ALTER TABLE campaigns ADD COLUMN valid_for_ms BIGINT NOT NULL DEFAULT 0 CHECK (valid_for_ms >= 0);
ALTER TABLE campaigns ADD COLUMN valid_until BIGINT NOT NULL DEFAULT 0 CHECK (valid_until >= 0);

-- +goose Down
ALTER TABLE campaigns DROP COLUMN valid_until;
ALTER TABLE campaigns DROP COLUMN valid_for_ms;
DROP TABLE payments;
DROP TABLE claim_events;
DROP FUNCTION claim_events_stay();
DROP INDEX claims_due;
ALTER TABLE claims DROP COLUMN steps;
