-- Campaigns that get more shards while they are live; migrations/sqlite says what the column is for.

-- +goose Up
ALTER TABLE campaigns ADD COLUMN earlier_shards TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE campaigns DROP COLUMN earlier_shards;
