-- What an API key may be used for, until when, and when it was last; migrations/sqlite says more.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE api_keys ADD COLUMN expires_at BIGINT NOT NULL DEFAULT 0, ADD COLUMN last_used_at BIGINT NOT NULL DEFAULT 0, ADD COLUMN scopes VARCHAR(4096) NOT NULL DEFAULT ''''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'api_keys' AND column_name = 'scopes');
PREPARE change_keys FROM @change;
EXECUTE change_keys;
DEALLOCATE PREPARE change_keys;

-- +goose Down
ALTER TABLE api_keys DROP COLUMN scopes, DROP COLUMN last_used_at, DROP COLUMN expires_at;
