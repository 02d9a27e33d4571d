-- Servers that wait for each other; migrations/sqlite says what the columns are for.

-- +goose Up
ALTER TABLE engine_servers ADD COLUMN waits_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE engine_servers ADD COLUMN waits_at BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE engine_servers DROP COLUMN waits_at;
ALTER TABLE engine_servers DROP COLUMN waits_since;
