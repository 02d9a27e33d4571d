-- A limit over the campaigns of a product.

-- +goose Up
-- limit_per_product is what one user may hold over all campaigns of the product that
-- have such a limit; 0 for a campaign without one.
ALTER TABLE campaigns ADD COLUMN limit_per_product INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE campaigns DROP COLUMN limit_per_product;
