-- The ledger on MySQL and MariaDB; migrations/sqlite says what the tables are
-- for. These databases commit every statement that makes a table by itself:
-- each can be run again. Ids compare byte by byte: the collation is binary, and
-- items, which may end in spaces, are bytes. There is no trigger that keeps an
-- item with its claim, as elsewhere: with a binary log it would ask for rights
-- that dibs has no need of.

-- +goose Up
CREATE TABLE IF NOT EXISTS products (
    id          VARCHAR(64) NOT NULL PRIMARY KEY,
    name        TEXT        NOT NULL,
    thumbnail   TEXT        NOT NULL,
    price       BIGINT      NOT NULL CHECK (price >= 0),
    currency    VARCHAR(8)  NOT NULL,
    status      INTEGER     NOT NULL,
    stock       BIGINT      NOT NULL CHECK (stock >= 0),
    stock_left  BIGINT      NOT NULL CHECK (stock_left >= 0),
    description TEXT        NOT NULL,
    comment     TEXT        NOT NULL,
    version     BIGINT      NOT NULL,
    created_at  BIGINT      NOT NULL,
    updated_at  BIGINT      NOT NULL,
    CHECK (stock_left <= stock)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS campaigns (
    number         INTEGER     NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id             VARCHAR(64) NOT NULL UNIQUE,
    kind           VARCHAR(16) NOT NULL,
    title          TEXT        NOT NULL,
    product_id     VARCHAR(64) NOT NULL,
    comment        TEXT        NOT NULL,
    starts_at      BIGINT      NOT NULL,
    ends_at        BIGINT      NOT NULL,
    state          VARCHAR(16) NOT NULL,
    stock_kind     VARCHAR(16) NOT NULL,
    stock_initial  BIGINT      NOT NULL CHECK (stock_initial >= 0),
    stock_total    BIGINT      NOT NULL CHECK (stock_total >= 0),
    stock_left     BIGINT      NOT NULL CHECK (stock_left >= 0),
    code_pattern   TEXT        NOT NULL,
    limit_per_user BIGINT      NOT NULL CHECK (limit_per_user >= 1),
    price_amount   BIGINT      NOT NULL CHECK (price_amount >= 0),
    price_currency VARCHAR(8)  NOT NULL,
    pay_within_ms  BIGINT      NOT NULL CHECK (pay_within_ms >= 0),
    late_payment   VARCHAR(16) NOT NULL,
    shards         INTEGER     NOT NULL CHECK (shards >= 1 AND shards <= 256),
    version        BIGINT      NOT NULL,
    created_at     BIGINT      NOT NULL,
    updated_at     BIGINT      NOT NULL,
    INDEX campaigns_by_state (state),
    CHECK (stock_left <= stock_total)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS positions (
    campaign   INTEGER  NOT NULL CHECK (campaign <= 268435455),
    shard      SMALLINT NOT NULL CHECK (shard >= 0 AND shard <= 255),
    epoch      INTEGER  NOT NULL CHECK (epoch >= 0 AND epoch <= 4095),
    pos_epoch  INTEGER  NOT NULL CHECK (pos_epoch >= 0),
    pos_seq    BIGINT   NOT NULL CHECK (pos_seq >= 0),
    stock      BIGINT   NOT NULL CHECK (stock >= 0),
    stock_left BIGINT   NOT NULL CHECK (stock_left >= 0),
    pending    BIGINT   NOT NULL CHECK (pending >= 0),
    confirmed  BIGINT   NOT NULL CHECK (confirmed >= 0),
    released   BIGINT   NOT NULL CHECK (released >= 0),
    refunded   BIGINT   NOT NULL CHECK (refunded >= 0),
    PRIMARY KEY (campaign, shard),
    FOREIGN KEY (campaign) REFERENCES campaigns (number),
    CHECK (pos_epoch <= epoch),
    CHECK (stock_left <= stock)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The primary key is the place in the journal, so that rows arrive in order.
-- The index by user is the only one in random order, and the main cost of a
-- claim: think twice before adding another.
CREATE TABLE IF NOT EXISTS claims (
    campaign    INTEGER     NOT NULL,
    shard       SMALLINT    NOT NULL,
    epoch       SMALLINT    NOT NULL,
    seq         BIGINT      NOT NULL,
    user_id     VARCHAR(64) NOT NULL,
    quantity    BIGINT      NOT NULL CHECK (quantity > 0),
    status      SMALLINT    NOT NULL CHECK (status IN (-1, 0, 1, 2)),
    order_type  SMALLINT    NOT NULL,
    amount      BIGINT      NOT NULL,
    currency    VARCHAR(8)  NOT NULL,
    request_key BIGINT      NOT NULL,
    restocked   SMALLINT    NOT NULL CHECK (restocked IN (0, 1)),
    pay_by      BIGINT      NOT NULL,
    created_at  BIGINT      NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    INDEX claims_by_user (user_id, created_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS items (
    campaign INTEGER        NOT NULL,
    n        BIGINT         NOT NULL CHECK (n >= 0),
    value    VARBINARY(512) NOT NULL,
    shard    SMALLINT       NOT NULL,
    claim_epoch SMALLINT,
    claim_seq   BIGINT,
    withdrawn SMALLINT NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1)),
    PRIMARY KEY (campaign, n),
    UNIQUE (campaign, value),
    FOREIGN KEY (campaign, shard, claim_epoch, claim_seq) REFERENCES claims (campaign, shard, epoch, seq),
    CHECK ((claim_epoch IS NULL) = (claim_seq IS NULL)),
    CHECK (withdrawn = 0 OR claim_epoch IS NULL),
    INDEX items_by_claim (campaign, shard, claim_epoch, claim_seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS adjustments (
    campaign INTEGER      NOT NULL,
    shard    SMALLINT     NOT NULL,
    ref      VARCHAR(512) NOT NULL,
    delta    BIGINT       NOT NULL,
    why      TEXT         NOT NULL,
    at       BIGINT       NOT NULL,
    PRIMARY KEY (campaign, ref),
    FOREIGN KEY (campaign, shard) REFERENCES positions (campaign, shard)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS outbox (
    id       BIGINT   NOT NULL AUTO_INCREMENT PRIMARY KEY,
    campaign INTEGER  NOT NULL,
    shard    SMALLINT NOT NULL,
    epoch    INTEGER  NOT NULL,
    payload  LONGBLOB NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS api_keys (
    id         VARCHAR(64)    NOT NULL PRIMARY KEY,
    name       TEXT           NOT NULL,
    role       VARCHAR(16)    NOT NULL,
    hash       VARBINARY(255) NOT NULL UNIQUE,
    created_at BIGINT         NOT NULL,
    revoked_at BIGINT         NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS requests (
    caller      VARCHAR(255) NOT NULL,
    request_key VARCHAR(255) NOT NULL,
    hash        LONGBLOB     NOT NULL,
    status      INTEGER      NOT NULL,
    body        LONGBLOB     NOT NULL,
    at          BIGINT       NOT NULL,
    PRIMARY KEY (caller, request_key),
    INDEX requests_by_age (at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS secrets (
    name  VARCHAR(64)     NOT NULL PRIMARY KEY,
    value VARBINARY(1024) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS secrets;
DROP TABLE IF EXISTS requests;
DROP TABLE IF EXISTS api_keys;
DROP TABLE IF EXISTS outbox;
DROP TABLE IF EXISTS adjustments;
DROP TABLE IF EXISTS items;
DROP TABLE IF EXISTS claims;
DROP TABLE IF EXISTS positions;
DROP TABLE IF EXISTS campaigns;
DROP TABLE IF EXISTS products;
