-- Whose keys come from whom; migrations/sqlite says what the columns are for.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE api_keys ADD COLUMN roots VARCHAR(4096) NOT NULL DEFAULT ''''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'api_keys' AND column_name = 'roots');
PREPARE change_api_keys FROM @change;
EXECUTE change_api_keys;
DEALLOCATE PREPARE change_api_keys;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE approvals ADD COLUMN asked_roots VARCHAR(4096) NOT NULL DEFAULT ''''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'approvals' AND column_name = 'asked_roots');
PREPARE change_approvals FROM @change;
EXECUTE change_approvals;
DEALLOCATE PREPARE change_approvals;

-- +goose Down
ALTER TABLE approvals DROP COLUMN asked_roots;
ALTER TABLE api_keys DROP COLUMN roots;
