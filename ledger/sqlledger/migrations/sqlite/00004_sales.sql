-- Sales and orders: prices by tiers, a notice of low stock, orders of a
-- product's own stock, and the search for orders.

-- +goose Up
-- Tiers is a JSON list; empty for none.
ALTER TABLE campaigns ADD COLUMN tiers TEXT NOT NULL DEFAULT '';

-- The stock left from which on a campaign is marked as low, 0 for never, and since
-- when it has been so low, 0 while it is not.
ALTER TABLE campaigns ADD COLUMN low_stock INTEGER NOT NULL DEFAULT 0 CHECK (low_stock >= 0);
ALTER TABLE campaigns ADD COLUMN low_since INTEGER NOT NULL DEFAULT 0 CHECK (low_since >= 0);

-- How orders of a product's own stock are paid.
ALTER TABLE products ADD COLUMN pay_within_ms INTEGER NOT NULL DEFAULT 0 CHECK (pay_within_ms >= 0);
ALTER TABLE products ADD COLUMN late_payment TEXT NOT NULL DEFAULT 'reclaim';

-- What orders are looked for by. Claims come in the order of their times, so
-- that this index grows at its end.
CREATE INDEX claims_by_time ON claims (created_at);
CREATE INDEX payments_by_ref ON payments (ref);
CREATE INDEX campaigns_by_product ON campaigns (product_id);

-- +goose Down
DROP INDEX campaigns_by_product;
DROP INDEX payments_by_ref;
DROP INDEX claims_by_time;
ALTER TABLE products DROP COLUMN late_payment;
ALTER TABLE products DROP COLUMN pay_within_ms;
ALTER TABLE campaigns DROP COLUMN low_since;
ALTER TABLE campaigns DROP COLUMN low_stock;
ALTER TABLE campaigns DROP COLUMN tiers;
