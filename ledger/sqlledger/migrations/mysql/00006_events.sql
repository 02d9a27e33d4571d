-- The feed of events, its sinks and webhooks; migrations/sqlite says what the tables are for.

-- +goose Up
CREATE TABLE IF NOT EXISTS feed_head (
    one     SMALLINT NOT NULL PRIMARY KEY CHECK (one = 1),
    last_id BIGINT   NOT NULL CHECK (last_id >= 0)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO feed_head (one, last_id) VALUES (1, 0);

CREATE TABLE IF NOT EXISTS feed (
    id      BIGINT      NOT NULL PRIMARY KEY,
    kind    VARCHAR(16) NOT NULL,
    at      BIGINT      NOT NULL,
    payload MEDIUMBLOB  NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS sinks (
    name        VARCHAR(191)  NOT NULL PRIMARY KEY,
    taken       BIGINT        NOT NULL CHECK (taken >= 0),
    owner       VARCHAR(191)  NOT NULL,
    lease_until BIGINT        NOT NULL,
    seen_at     BIGINT        NOT NULL,
    published   BIGINT        NOT NULL,
    failures    INTEGER       NOT NULL,
    problem     VARCHAR(1000) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS webhook_endpoints (
    id              VARCHAR(64)   NOT NULL PRIMARY KEY,
    url             VARCHAR(2048) NOT NULL,
    description     VARCHAR(1024) NOT NULL,
    types           TEXT          NOT NULL,
    secret          VARCHAR(128)  NOT NULL,
    old_secret      VARCHAR(128)  NOT NULL,
    old_until       BIGINT        NOT NULL,
    disabled        SMALLINT      NOT NULL CHECK (disabled IN (0, 1)),
    disabled_reason VARCHAR(255)  NOT NULL,
    version         BIGINT        NOT NULL,
    created_at      BIGINT        NOT NULL,
    updated_at      BIGINT        NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS webhook_deliveries (
    id         BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    endpoint   VARCHAR(64)  NOT NULL,
    event_id   VARCHAR(128) NOT NULL,
    type       VARCHAR(64)  NOT NULL,
    subject    VARCHAR(64)  NOT NULL,
    body       MEDIUMBLOB   NOT NULL,
    status     VARCHAR(16)  NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts   INTEGER      NOT NULL,
    next_at    BIGINT       NOT NULL,
    answer     INTEGER      NOT NULL,
    problem    VARCHAR(1000) NOT NULL,
    created_at BIGINT       NOT NULL,
    updated_at BIGINT       NOT NULL,
    UNIQUE KEY webhook_deliveries_once (endpoint, event_id),
    KEY webhook_deliveries_by_status (endpoint, status, id),
    KEY webhook_deliveries_by_subject (endpoint, subject, id),
    FOREIGN KEY (endpoint) REFERENCES webhook_endpoints (id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS webhook_deliveries;
DROP TABLE IF EXISTS webhook_endpoints;
DROP TABLE IF EXISTS sinks;
DROP TABLE IF EXISTS feed;
DROP TABLE IF EXISTS feed_head;
