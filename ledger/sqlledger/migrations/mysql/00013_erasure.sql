-- Erasures of users; migrations/sqlite says what the columns are for.

-- +goose Up
CREATE TABLE IF NOT EXISTS erasures (
    id            VARCHAR(64)  NOT NULL PRIMARY KEY,
    user_id       VARCHAR(64)  UNIQUE,
    pseudonym     VARCHAR(64)  NOT NULL,
    leave_balance SMALLINT     NOT NULL CHECK (leave_balance IN (0, 1)),
    state         VARCHAR(16)  NOT NULL,
    step          VARCHAR(32)  NOT NULL,
    place         VARCHAR(600) NOT NULL,
    changed       BIGINT       NOT NULL,
    clean_since   BIGINT       NOT NULL,
    waits         MEDIUMTEXT   NOT NULL,
    erased        TEXT         NOT NULL,
    requested_at  BIGINT       NOT NULL,
    updated_at    BIGINT       NOT NULL,
    done_at       BIGINT       NOT NULL,
    version       BIGINT       NOT NULL,
    KEY erasures_by_time (requested_at, id),
    CHECK ((state = 'done') = (user_id IS NULL))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS erasures;
