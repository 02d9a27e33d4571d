-- Sales and orders; migrations/sqlite says what it is for. A change of a table
-- that is there already is made only when its column or its index is missing,
-- so that it can be run again.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE campaigns
    ADD COLUMN tiers VARCHAR(1024) NOT NULL DEFAULT '''',
    ADD COLUMN low_stock BIGINT NOT NULL DEFAULT 0 CHECK (low_stock >= 0),
    ADD COLUMN low_since BIGINT NOT NULL DEFAULT 0 CHECK (low_since >= 0),
    ADD INDEX campaigns_by_product (product_id)')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'campaigns' AND column_name = 'tiers');
PREPARE change_campaigns FROM @change;
EXECUTE change_campaigns;
DEALLOCATE PREPARE change_campaigns;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE products
    ADD COLUMN pay_within_ms BIGINT NOT NULL DEFAULT 0 CHECK (pay_within_ms >= 0),
    ADD COLUMN late_payment VARCHAR(16) NOT NULL DEFAULT ''reclaim''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'products' AND column_name = 'pay_within_ms');
PREPARE change_products FROM @change;
EXECUTE change_products;
DEALLOCATE PREPARE change_products;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE claims ADD INDEX claims_by_time (created_at)')
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'claims' AND index_name = 'claims_by_time');
PREPARE change_claims FROM @change;
EXECUTE change_claims;
DEALLOCATE PREPARE change_claims;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE payments ADD INDEX payments_by_ref (ref)')
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'payments' AND index_name = 'payments_by_ref');
PREPARE change_payments FROM @change;
EXECUTE change_payments;
DEALLOCATE PREPARE change_payments;

-- +goose Down
ALTER TABLE payments DROP INDEX payments_by_ref;
ALTER TABLE claims DROP INDEX claims_by_time;
ALTER TABLE products DROP COLUMN late_payment, DROP COLUMN pay_within_ms;
ALTER TABLE campaigns DROP INDEX campaigns_by_product, DROP COLUMN low_since, DROP COLUMN low_stock, DROP COLUMN tiers;
