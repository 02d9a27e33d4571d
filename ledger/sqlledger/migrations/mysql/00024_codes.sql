-- Items may be stored encrypted; migrations/sqlite says what the number is for.

-- +goose Up
-- An encrypted item is longer than the plain one: 512 bytes become 731.
ALTER TABLE items MODIFY COLUMN value VARBINARY(768) NOT NULL;

-- +goose Down
ALTER TABLE items MODIFY COLUMN value VARBINARY(512) NOT NULL;
