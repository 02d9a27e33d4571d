-- Waiting rooms and lotteries; migrations/sqlite says what the tables are for.

-- +goose Up
CREATE TABLE IF NOT EXISTS lotteries (
    campaign     INTEGER      NOT NULL PRIMARY KEY,
    seed         VARCHAR(64)  NOT NULL,
    winners      BIGINT       NOT NULL CHECK (winners > 0),
    committed_at BIGINT       NOT NULL,
    closed_at    BIGINT       NOT NULL,
    entries      BIGINT       NOT NULL CHECK (entries >= 0),
    list_hash    VARCHAR(64)  NOT NULL,
    public_value VARCHAR(255) NOT NULL,
    cutoff       VARCHAR(64)  NOT NULL,
    drawn_at     BIGINT       NOT NULL,
    version      BIGINT       NOT NULL,
    FOREIGN KEY (campaign) REFERENCES campaigns (number)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS lottery_entries (
    campaign INTEGER     NOT NULL,
    user_id  VARCHAR(64) NOT NULL,
    entry    VARCHAR(64) NOT NULL,
    nonce    VARCHAR(64) NOT NULL,
    at       BIGINT      NOT NULL,
    PRIMARY KEY (campaign, user_id),
    UNIQUE KEY lottery_entries_by_hash (campaign, entry),
    FOREIGN KEY (campaign) REFERENCES lotteries (campaign)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS rooms (
    campaign       INTEGER     NOT NULL PRIMARY KEY,
    tail           BIGINT      NOT NULL,
    early          BIGINT      NOT NULL,
    seed           VARCHAR(64) NOT NULL,
    admitted_micro BIGINT      NOT NULL,
    at             BIGINT      NOT NULL,
    FOREIGN KEY (campaign) REFERENCES campaigns (number)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS room_places (
    campaign INTEGER     NOT NULL,
    number   BIGINT      NOT NULL CHECK (number > 0),
    user_id  VARCHAR(64) NOT NULL,
    PRIMARY KEY (campaign, number),
    FOREIGN KEY (campaign) REFERENCES rooms (campaign)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS room_places;
DROP TABLE IF EXISTS rooms;
DROP TABLE IF EXISTS lottery_entries;
DROP TABLE IF EXISTS lotteries;
