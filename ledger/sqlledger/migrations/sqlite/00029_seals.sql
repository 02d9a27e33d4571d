-- Entries of the admin log that stay checkable when a user is erased.

-- +goose Up
-- The seals of an entry's texts as JSON: salt and digest of each place that an erasure may change. NULL for an entry of
-- which no record in the chain has seals, as all of before.
ALTER TABLE audit ADD COLUMN parts TEXT;

-- When an entry of the admin log last asked for the erasure, 0 for none.
ALTER TABLE erasures ADD COLUMN asked_at INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE erasures DROP COLUMN asked_at;
ALTER TABLE audit DROP COLUMN parts;
