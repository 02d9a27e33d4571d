-- Where journals ended whose last row was trimmed. A ledger that was restored from
-- an old backup is known by it.

-- +goose Up
CREATE TABLE IF NOT EXISTS journal_ends (
    campaign INTEGER NOT NULL,
    shard    SMALLINT NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      BIGINT NOT NULL,
    PRIMARY KEY (campaign, shard)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE journal_ends;
