-- Which server holds a shard, and which servers are alive; migrations/sqlite says what they are for.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE positions ADD COLUMN server VARCHAR(128) NOT NULL DEFAULT ''''')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'positions' AND column_name = 'server');
PREPARE change_positions FROM @change;
EXECUTE change_positions;
DEALLOCATE PREPARE change_positions;

CREATE TABLE IF NOT EXISTS engine_servers (
    server  VARCHAR(128) NOT NULL PRIMARY KEY,
    seen_at BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS engine_servers;
ALTER TABLE positions DROP COLUMN server;
