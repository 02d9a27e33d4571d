-- Servers that wait for each other; migrations/sqlite says what the columns are for.
-- It can be run again: columns are added where they are missing.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE engine_servers ADD COLUMN waits_since BIGINT NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'engine_servers' AND column_name = 'waits_since');
PREPARE change_servers FROM @change;
EXECUTE change_servers;
DEALLOCATE PREPARE change_servers;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE engine_servers ADD COLUMN waits_at BIGINT NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'engine_servers' AND column_name = 'waits_at');
PREPARE change_servers FROM @change;
EXECUTE change_servers;
DEALLOCATE PREPARE change_servers;

-- +goose Down
ALTER TABLE engine_servers DROP COLUMN waits_at;
ALTER TABLE engine_servers DROP COLUMN waits_since;
