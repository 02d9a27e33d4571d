-- People who have been identified for a command line; migrations/sqlite says what the columns are for.

-- +goose Up
CREATE TABLE IF NOT EXISTS pending_sign_ins (
    hash       VARBINARY(32) NOT NULL PRIMARY KEY,
    person     VARCHAR(512)  NOT NULL,
    name       VARCHAR(1000) NOT NULL,
    role       VARCHAR(16)   NOT NULL,
    challenge  VARCHAR(64)   NOT NULL,
    expires_at BIGINT        NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS pending_sign_ins;
