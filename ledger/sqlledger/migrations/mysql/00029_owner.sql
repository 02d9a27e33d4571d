-- +goose Up
ALTER TABLE campaigns ADD COLUMN owner VARCHAR(100) NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE campaigns DROP COLUMN owner;
