-- Endpoints that fail, and the age of deliveries; migrations/sqlite says what for.
-- Every statement can be run again.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE webhook_endpoints
    ADD COLUMN failing_since BIGINT NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'webhook_endpoints' AND column_name = 'failing_since');
PREPARE change_endpoints FROM @change;
EXECUTE change_endpoints;
DEALLOCATE PREPARE change_endpoints;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE webhook_deliveries
    ADD INDEX webhook_deliveries_by_age (status, updated_at)')
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'webhook_deliveries' AND index_name = 'webhook_deliveries_by_age');
PREPARE change_deliveries FROM @change;
EXECUTE change_deliveries;
DEALLOCATE PREPARE change_deliveries;

-- +goose Down
ALTER TABLE webhook_deliveries DROP INDEX webhook_deliveries_by_age;
ALTER TABLE webhook_endpoints DROP COLUMN failing_since;
