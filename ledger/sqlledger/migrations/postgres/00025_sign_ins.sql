-- People who have been identified for a command line; migrations/sqlite says what the columns are for.

-- +goose Up
CREATE TABLE pending_sign_ins (
    hash       BYTEA  NOT NULL PRIMARY KEY,
    person     TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    role       TEXT   NOT NULL,
    challenge  TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE pending_sign_ins;
