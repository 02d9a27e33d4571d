-- Red packets and money; migrations/sqlite says what the tables are for.

-- +goose Up
ALTER TABLE items ADD COLUMN amount BIGINT NOT NULL DEFAULT 0 CHECK (amount >= 0);

CREATE TABLE packets (
    campaign       INTEGER NOT NULL PRIMARY KEY REFERENCES campaigns (number),
    sender_id      TEXT    NOT NULL,
    total_amount   BIGINT  NOT NULL CHECK (total_amount > 0),
    total_currency TEXT    NOT NULL,
    share_count    BIGINT  NOT NULL CHECK (share_count > 0),
    split          TEXT    NOT NULL,
    share_min      BIGINT  NOT NULL CHECK (share_min > 0),
    share_max      BIGINT  NOT NULL CHECK (share_max >= 0),
    funded_at      BIGINT  NOT NULL CHECK (funded_at >= 0),
    returned_at    BIGINT  NOT NULL CHECK (returned_at >= 0),
    credited       BIGINT  NOT NULL CHECK (credited >= 0),
    returned       BIGINT  NOT NULL CHECK (returned >= 0),
    credit_epoch   INTEGER NOT NULL,
    credit_seq     BIGINT  NOT NULL,
    CHECK (credited + returned <= total_amount)
);

CREATE INDEX packets_open ON packets (returned_at, funded_at);

CREATE TABLE accounts (
    kind     TEXT   NOT NULL,
    owner    TEXT   NOT NULL,
    currency TEXT   NOT NULL,
    balance  BIGINT NOT NULL CHECK (balance > -9007199254740992 AND balance < 9007199254740992),
    PRIMARY KEY (kind, owner, currency),
    CHECK (balance >= 0 OR kind IN ('platform', 'outside'))
);

CREATE TABLE entries (
    campaign INTEGER  NOT NULL,
    shard    SMALLINT NOT NULL,
    epoch    SMALLINT NOT NULL,
    seq      BIGINT   NOT NULL,
    what     TEXT     NOT NULL,
    ref      TEXT     NOT NULL,
    side     SMALLINT NOT NULL CHECK (side IN (0, 1)),
    kind     TEXT     NOT NULL,
    owner    TEXT     NOT NULL,
    currency TEXT     NOT NULL,
    amount   BIGINT   NOT NULL CHECK (side = 0 AND amount < 0 OR side = 1 AND amount > 0),
    at       BIGINT   NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq, what, ref, side)
);

CREATE INDEX entries_by_owner ON entries (owner, at) WHERE kind = 'user';

-- +goose StatementBegin
CREATE FUNCTION entries_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an entry never changes' USING ERRCODE = 'check_violation';
END;
$$;
-- +goose StatementEnd

CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION entries_stay();

-- +goose Down
DROP TABLE entries;
DROP FUNCTION entries_stay;
DROP TABLE accounts;
DROP TABLE packets;
ALTER TABLE items DROP COLUMN amount;
