-- What is written about claims, and when a campaign was ended; migrations/sqlite says more.

-- +goose Up
CREATE TABLE IF NOT EXISTS claim_references (
    campaign  INTEGER      NOT NULL,
    shard     SMALLINT     NOT NULL,
    epoch     SMALLINT     NOT NULL,
    seq       BIGINT       NOT NULL,
    reference VARCHAR(256) NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    INDEX claim_references_by_reference (reference, campaign, shard, epoch, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS claim_comments (
    campaign   INTEGER      NOT NULL,
    shard      SMALLINT     NOT NULL,
    epoch      SMALLINT     NOT NULL,
    seq        BIGINT       NOT NULL,
    comment    VARCHAR(255) NOT NULL,
    updated_at BIGINT       NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE campaigns ADD COLUMN ended_at BIGINT NOT NULL DEFAULT 0 CHECK (ended_at >= 0)')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'campaigns' AND column_name = 'ended_at');
PREPARE change_campaigns FROM @change;
EXECUTE change_campaigns;
DEALLOCATE PREPARE change_campaigns;
UPDATE campaigns SET ended_at = updated_at WHERE state = 'ended' AND ended_at = 0;

-- +goose Down
ALTER TABLE campaigns DROP COLUMN ended_at;
DROP TABLE IF EXISTS claim_comments;
DROP TABLE IF EXISTS claim_references;
