-- Journal entries that the ledger could not take; migrations/sqlite says more.

-- +goose Up
CREATE TABLE quarantine (
    campaign    INTEGER NOT NULL,
    shard       SMALLINT NOT NULL,
    epoch       INTEGER NOT NULL,
    seq         BIGINT NOT NULL,
    kind        SMALLINT NOT NULL,
    user_id     TEXT COLLATE "C" NOT NULL,
    quantity    BIGINT NOT NULL,
    counted     BIGINT NOT NULL CHECK (counted >= 0),
    status      SMALLINT NOT NULL,
    request_key BIGINT NOT NULL,
    ref         TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT NOT NULL,
    pay_by      BIGINT NOT NULL,
    items       TEXT NOT NULL,
    why         TEXT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard) REFERENCES positions (campaign, shard)
);

-- +goose Down
DROP TABLE quarantine;
