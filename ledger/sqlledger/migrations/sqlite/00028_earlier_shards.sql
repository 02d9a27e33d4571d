-- Campaigns that get more shards while they are live.

-- +goose Up
-- The numbers of shards that a campaign had before, such as 2,4; empty for one that has those that it began with, as
-- all of before have.
ALTER TABLE campaigns ADD COLUMN earlier_shards TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE campaigns DROP COLUMN earlier_shards;
