-- Which server holds a shard, and which servers are alive; migrations/sqlite says what they are for.

-- +goose Up
ALTER TABLE positions ADD COLUMN server TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE engine_servers (
    server  TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seen_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE engine_servers;
ALTER TABLE positions DROP COLUMN server;
