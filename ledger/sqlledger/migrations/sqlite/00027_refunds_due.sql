-- The payments that came too late and were not given back yet, which administrators look for.

-- +goose Up
-- Few payments are due, and only these are in the index: all others cost nothing more.
CREATE INDEX payments_due ON payments (campaign, shard, epoch, seq) WHERE due = 1;

-- +goose Down
DROP INDEX payments_due;
