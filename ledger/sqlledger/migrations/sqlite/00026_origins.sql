-- Whose keys come from whom, so that one administrator cannot be two.

-- +goose Up
-- roots is a JSON list of the keys and people that a key comes from; empty for one of no other origin than itself, as
-- all of before are. asked_roots is that of the key that asked.
ALTER TABLE api_keys ADD COLUMN roots TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN asked_roots TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE approvals DROP COLUMN asked_roots;
ALTER TABLE api_keys DROP COLUMN roots;
