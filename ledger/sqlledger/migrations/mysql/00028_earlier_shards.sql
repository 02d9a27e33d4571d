-- Campaigns that get more shards while they are live; migrations/sqlite says what the column is for. It can be run
-- again: the column is added where it is missing.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE campaigns ADD COLUMN earlier_shards VARCHAR(64) NOT NULL DEFAULT ''''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'campaigns' AND column_name = 'earlier_shards');
PREPARE change_campaigns FROM @change;
EXECUTE change_campaigns;
DEALLOCATE PREPARE change_campaigns;

-- +goose Down
ALTER TABLE campaigns DROP COLUMN earlier_shards;
