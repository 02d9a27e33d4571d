-- Journal entries that the ledger could not take, with the reason. Each counts in
-- the sums, with as much of its quantity as there was stock. Nothing constrains
-- what it records: that is why it is here. Items is a JSON list of numbers.

-- +goose Up
CREATE TABLE quarantine (
    campaign    INTEGER NOT NULL,
    shard       INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    user_id     TEXT NOT NULL,
    quantity    INTEGER NOT NULL,
    counted     INTEGER NOT NULL CHECK (counted >= 0),
    status      INTEGER NOT NULL,
    request_key INTEGER NOT NULL,
    ref         TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    pay_by      INTEGER NOT NULL,
    items       TEXT NOT NULL,
    why         TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard) REFERENCES positions (campaign, shard)
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE quarantine;
