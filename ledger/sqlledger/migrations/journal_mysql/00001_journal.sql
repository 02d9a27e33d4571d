-- The embedded engine's journal, beside the ledger.

-- +goose Up
CREATE TABLE IF NOT EXISTS lease (
    id          SMALLINT     NOT NULL PRIMARY KEY CHECK (id = 1),
    owner       VARCHAR(512) NOT NULL,
    generation  BIGINT       NOT NULL,
    acquired_at BIGINT       NOT NULL,
    reopened    BIGINT       NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO lease (id, owner, generation, acquired_at, reopened) VALUES (1, '', 0, 0, 0);

-- One row per group commit and shard.
CREATE TABLE IF NOT EXISTS journal (
    id        BIGINT   NOT NULL AUTO_INCREMENT PRIMARY KEY,
    campaign  INTEGER  NOT NULL,
    shard     SMALLINT NOT NULL,
    epoch     INTEGER  NOT NULL,
    first_seq BIGINT   NOT NULL,
    last_seq  BIGINT   NOT NULL,
    at        BIGINT   NOT NULL,
    payload   LONGBLOB NOT NULL,
    UNIQUE INDEX journal_by_place (campaign, shard, epoch, first_seq),
    CHECK (last_seq >= first_seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS journal;
DROP TABLE IF EXISTS lease;
