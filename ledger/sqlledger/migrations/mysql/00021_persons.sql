-- Administrators who sign in at an identity provider; migrations/sqlite says what the columns are for.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE api_keys ADD COLUMN person VARCHAR(512) NOT NULL DEFAULT ''''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'api_keys' AND column_name = 'person');
PREPARE change_api_keys FROM @change;
EXECUTE change_api_keys;
DEALLOCATE PREPARE change_api_keys;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE approvals ADD COLUMN asked_person VARCHAR(512) NOT NULL DEFAULT ''''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'approvals' AND column_name = 'asked_person');
PREPARE change_approvals FROM @change;
EXECUTE change_approvals;
DEALLOCATE PREPARE change_approvals;

-- +goose Down
ALTER TABLE approvals DROP COLUMN asked_person;
DELETE FROM api_keys WHERE person <> '';
ALTER TABLE api_keys DROP COLUMN person;
