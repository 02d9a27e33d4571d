-- Where journals ended whose last row was trimmed. A ledger that was restored from
-- an old backup is known by it.

-- +goose Up
CREATE TABLE journal_ends (
    campaign INTEGER NOT NULL,
    shard    SMALLINT NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      BIGINT NOT NULL,
    PRIMARY KEY (campaign, shard)
);

-- +goose Down
DROP TABLE journal_ends;
