-- A limit over the campaigns of a product; migrations/sqlite says more. It can be run
-- again: the column is added where it is missing.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE campaigns ADD COLUMN limit_per_product BIGINT NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'campaigns' AND column_name = 'limit_per_product');
PREPARE change_campaigns FROM @change;
EXECUTE change_campaigns;
DEALLOCATE PREPARE change_campaigns;

-- +goose Down
ALTER TABLE campaigns DROP COLUMN limit_per_product;
