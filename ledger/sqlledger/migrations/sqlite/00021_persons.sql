-- Administrators who sign in at an identity provider.

-- +goose Up
-- person is the provider's address and its name of the one who signed in; empty for a key that was made.
ALTER TABLE api_keys ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN asked_person TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE approvals DROP COLUMN asked_person;
DELETE FROM api_keys WHERE person <> '';
ALTER TABLE api_keys DROP COLUMN person;
