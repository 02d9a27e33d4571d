-- The deployments of the engine, and which of them has which shard; migrations/sqlite says what the columns are for.

-- +goose Up
CREATE TABLE deployments (
    number   INTEGER NOT NULL PRIMARY KEY,
    identity TEXT COLLATE "C" NOT NULL UNIQUE,
    place    TEXT COLLATE "C" NOT NULL,
    added_at BIGINT NOT NULL
);

ALTER TABLE positions ADD COLUMN deployment INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE positions DROP COLUMN deployment;
DROP TABLE deployments;
