-- Servers that wait for each other.

-- +goose Up
-- Since when a server has been refused shards that another one holds, and when it was the last time; 0 for never.
-- Of two that wait for each other one gets the rest.
ALTER TABLE engine_servers ADD COLUMN waits_since INTEGER NOT NULL DEFAULT 0;
ALTER TABLE engine_servers ADD COLUMN waits_at INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE engine_servers DROP COLUMN waits_at;
ALTER TABLE engine_servers DROP COLUMN waits_since;
