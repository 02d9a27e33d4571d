-- Red packets and money; migrations/sqlite says what the tables are for. Every
-- statement can be run again. These databases have no indexes of some rows.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE items
    ADD COLUMN amount BIGINT NOT NULL DEFAULT 0 CHECK (amount >= 0)')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'items' AND column_name = 'amount');
PREPARE change_items FROM @change;
EXECUTE change_items;
DEALLOCATE PREPARE change_items;

CREATE TABLE IF NOT EXISTS packets (
    campaign       INTEGER     NOT NULL PRIMARY KEY,
    sender_id      VARCHAR(64) NOT NULL,
    total_amount   BIGINT      NOT NULL CHECK (total_amount > 0),
    total_currency VARCHAR(8)  NOT NULL,
    share_count    BIGINT      NOT NULL CHECK (share_count > 0),
    split          VARCHAR(16) NOT NULL,
    share_min      BIGINT      NOT NULL CHECK (share_min > 0),
    share_max      BIGINT      NOT NULL CHECK (share_max >= 0),
    funded_at      BIGINT      NOT NULL CHECK (funded_at >= 0),
    returned_at    BIGINT      NOT NULL CHECK (returned_at >= 0),
    credited       BIGINT      NOT NULL CHECK (credited >= 0),
    returned       BIGINT      NOT NULL CHECK (returned >= 0),
    credit_epoch   INTEGER     NOT NULL,
    credit_seq     BIGINT      NOT NULL,
    FOREIGN KEY (campaign) REFERENCES campaigns (number),
    CHECK (credited + returned <= total_amount),
    INDEX packets_open (returned_at, funded_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS accounts (
    kind     VARCHAR(16) NOT NULL,
    owner    VARCHAR(64) NOT NULL,
    currency VARCHAR(8)  NOT NULL,
    balance  BIGINT      NOT NULL CHECK (balance > -9007199254740992 AND balance < 9007199254740992),
    PRIMARY KEY (kind, owner, currency),
    CHECK (balance >= 0 OR kind IN ('platform', 'outside'))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS entries (
    campaign INTEGER      NOT NULL,
    shard    SMALLINT     NOT NULL,
    epoch    SMALLINT     NOT NULL,
    seq      BIGINT       NOT NULL,
    what     VARCHAR(16)  NOT NULL,
    ref      VARCHAR(255) NOT NULL,
    side     SMALLINT     NOT NULL CHECK (side IN (0, 1)),
    kind     VARCHAR(16)  NOT NULL,
    owner    VARCHAR(64)  NOT NULL,
    currency VARCHAR(8)   NOT NULL,
    amount   BIGINT       NOT NULL,
    at       BIGINT       NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq, what, ref, side),
    INDEX entries_by_owner (owner, at),
    CHECK (side = 0 AND amount < 0 OR side = 1 AND amount > 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS entries;
DROP TABLE IF EXISTS accounts;
DROP TABLE IF EXISTS packets;
ALTER TABLE items DROP COLUMN amount;
