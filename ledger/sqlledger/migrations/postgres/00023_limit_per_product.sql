-- A limit over the campaigns of a product; migrations/sqlite says more.

-- +goose Up
ALTER TABLE campaigns ADD COLUMN limit_per_product BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE campaigns DROP COLUMN limit_per_product;
