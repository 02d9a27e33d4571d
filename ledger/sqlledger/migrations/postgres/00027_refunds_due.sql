-- The payments that are due; migrations/sqlite says what the index is for.

-- +goose Up
CREATE INDEX payments_due ON payments (campaign, shard, epoch, seq) WHERE due = 1;

-- +goose Down
DROP INDEX payments_due;
