-- Whose keys come from whom; migrations/sqlite says what the columns are for.

-- +goose Up
ALTER TABLE api_keys ADD COLUMN roots TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN asked_roots TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE approvals DROP COLUMN asked_roots;
ALTER TABLE api_keys DROP COLUMN roots;
