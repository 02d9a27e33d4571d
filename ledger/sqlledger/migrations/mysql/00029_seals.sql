-- Entries of the admin log that stay checkable when a user is erased; migrations/sqlite says what the columns are for.
-- It can be run again: columns are added where they are missing.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE audit ADD COLUMN parts MEDIUMTEXT')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'audit' AND column_name = 'parts');
PREPARE change_audit FROM @change;
EXECUTE change_audit;
DEALLOCATE PREPARE change_audit;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE erasures ADD COLUMN asked_at BIGINT NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'erasures' AND column_name = 'asked_at');
PREPARE change_erasures FROM @change;
EXECUTE change_erasures;
DEALLOCATE PREPARE change_erasures;

-- +goose Down
ALTER TABLE erasures DROP COLUMN asked_at;
ALTER TABLE audit DROP COLUMN parts;
