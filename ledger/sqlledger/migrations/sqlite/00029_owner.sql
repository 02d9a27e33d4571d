-- +goose Up
ALTER TABLE campaigns ADD COLUMN owner TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE campaigns DROP COLUMN owner;
