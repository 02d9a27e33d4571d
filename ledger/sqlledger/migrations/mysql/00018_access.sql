-- A chain over the admin log, tokens that were revoked, sessions of the console, and acts that
-- wait for a second person; migrations/sqlite says what they are for.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE audit ADD COLUMN chain_n BIGINT NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'audit' AND column_name = 'chain_n');
PREPARE change_audit FROM @change;
EXECUTE change_audit;
DEALLOCATE PREPARE change_audit;

CREATE TABLE IF NOT EXISTS audit_chain (
    n      BIGINT       NOT NULL PRIMARY KEY,
    entry  VARCHAR(64)  NOT NULL,
    at     BIGINT       NOT NULL,
    record TEXT         NOT NULL,
    salt   VARCHAR(64)  NOT NULL,
    prev   VARCHAR(64)  NOT NULL,
    hash   VARCHAR(64)  NOT NULL,
    KEY audit_chain_by_entry (entry),
    KEY audit_chain_by_time (at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS audit_head (
    one  INTEGER     NOT NULL PRIMARY KEY CHECK (one = 1),
    n    BIGINT      NOT NULL,
    hash VARCHAR(64) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT IGNORE INTO audit_head (one, n, hash) VALUES (1, 0, '');

CREATE TABLE IF NOT EXISTS token_revocations (
    id            VARCHAR(64)   NOT NULL PRIMARY KEY,
    jti           VARCHAR(255)  NOT NULL,
    user_id       VARCHAR(64)   NOT NULL,
    issued_before BIGINT        NOT NULL,
    why           VARCHAR(1000) NOT NULL,
    created_at    BIGINT        NOT NULL,
    expires_at    BIGINT        NOT NULL,
    KEY token_revocations_by_end (expires_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS console_sessions (
    id           VARCHAR(64)  NOT NULL PRIMARY KEY,
    key_id       VARCHAR(64)  NOT NULL,
    address      VARCHAR(64)  NOT NULL,
    agent        VARCHAR(255) NOT NULL,
    created_at   BIGINT       NOT NULL,
    expires_at   BIGINT       NOT NULL,
    last_used_at BIGINT       NOT NULL,
    ended_at     BIGINT       NOT NULL,
    KEY console_sessions_by_key (key_id, created_at),
    KEY console_sessions_by_end (expires_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS approvals (
    id           VARCHAR(64)   NOT NULL PRIMARY KEY,
    action       VARCHAR(64)   NOT NULL,
    target       VARCHAR(512)  NOT NULL,
    call_json    MEDIUMTEXT    NOT NULL,
    state        VARCHAR(16)   NOT NULL,
    asked_by     VARCHAR(191)  NOT NULL,
    asked_name   VARCHAR(1000) NOT NULL,
    asked_at     BIGINT        NOT NULL,
    expires_at   BIGINT        NOT NULL,
    decided_by   VARCHAR(191)  NOT NULL,
    decided_name VARCHAR(1000) NOT NULL,
    decided_at   BIGINT        NOT NULL,
    why          VARCHAR(1000) NOT NULL,
    status       INTEGER       NOT NULL,
    KEY approvals_by_time (asked_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS approvals;
DROP TABLE IF EXISTS console_sessions;
DROP TABLE IF EXISTS token_revocations;
DROP TABLE IF EXISTS audit_head;
DROP TABLE IF EXISTS audit_chain;
ALTER TABLE audit DROP COLUMN chain_n;
