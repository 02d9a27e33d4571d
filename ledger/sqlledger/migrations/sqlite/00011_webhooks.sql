-- An endpoint of which every attempt fails is disabled some time after the first
-- of them, and old deliveries are dropped by their age.

-- +goose Up
ALTER TABLE webhook_endpoints ADD COLUMN failing_since INTEGER NOT NULL DEFAULT 0;
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (status, updated_at);

-- +goose Down
DROP INDEX webhook_deliveries_by_age;
ALTER TABLE webhook_endpoints DROP COLUMN failing_since;
