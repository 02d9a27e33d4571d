-- The deployments of the engine, and which of them has which shard; migrations/sqlite says what the columns are for.

-- +goose Up
CREATE TABLE IF NOT EXISTS deployments (
    number   INT NOT NULL PRIMARY KEY,
    identity VARCHAR(64) NOT NULL UNIQUE,
    place    TEXT NOT NULL,
    added_at BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE positions ADD COLUMN deployment INT NOT NULL DEFAULT 0')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'positions' AND column_name = 'deployment');
PREPARE change_positions FROM @change;
EXECUTE change_positions;
DEALLOCATE PREPARE change_positions;

-- +goose Down
ALTER TABLE positions DROP COLUMN deployment;
DROP TABLE IF EXISTS deployments;
