-- What stands between users and a campaign; migrations/sqlite says what it is
-- for. It can be run again.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE campaigns ADD COLUMN gate VARCHAR(4096) NOT NULL DEFAULT ''''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'campaigns' AND column_name = 'gate');
PREPARE change_campaigns FROM @change;
EXECUTE change_campaigns;
DEALLOCATE PREPARE change_campaigns;

-- +goose Down
ALTER TABLE campaigns DROP COLUMN gate;
