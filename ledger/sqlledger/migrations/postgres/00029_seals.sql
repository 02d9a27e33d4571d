-- Entries of the admin log that stay checkable when a user is erased; migrations/sqlite says what the columns are for.

-- +goose Up
ALTER TABLE audit ADD COLUMN parts TEXT;
ALTER TABLE erasures ADD COLUMN asked_at BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE erasures DROP COLUMN asked_at;
ALTER TABLE audit DROP COLUMN parts;
