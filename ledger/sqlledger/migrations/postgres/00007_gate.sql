-- What stands between users and a campaign: limits, an audience, a waiting room,
-- tickets.

-- +goose Up
-- Gate is a JSON object; empty for none.
ALTER TABLE campaigns ADD COLUMN gate TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE campaigns DROP COLUMN gate;
