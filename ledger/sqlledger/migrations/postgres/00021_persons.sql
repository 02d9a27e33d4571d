-- Administrators who sign in at an identity provider; migrations/sqlite says what the columns are for.

-- +goose Up
ALTER TABLE api_keys ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN asked_person TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE approvals DROP COLUMN asked_person;
DELETE FROM api_keys WHERE person <> '';
ALTER TABLE api_keys DROP COLUMN person;
