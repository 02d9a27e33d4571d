-- Endpoints that fail, and the age of deliveries; migrations/sqlite says what for.

-- +goose Up
ALTER TABLE webhook_endpoints ADD COLUMN failing_since BIGINT NOT NULL DEFAULT 0;
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (status, updated_at);

-- +goose Down
DROP INDEX webhook_deliveries_by_age;
ALTER TABLE webhook_endpoints DROP COLUMN failing_since;
