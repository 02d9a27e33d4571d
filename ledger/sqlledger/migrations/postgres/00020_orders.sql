-- What is written about claims, and when a campaign was ended; migrations/sqlite says more.

-- +goose Up
CREATE TABLE claim_references (
    campaign  INTEGER  NOT NULL,
    shard     SMALLINT NOT NULL,
    epoch     SMALLINT NOT NULL,
    seq       BIGINT   NOT NULL,
    reference TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq)
);

CREATE INDEX claim_references_by_reference ON claim_references (reference, campaign, shard, epoch, seq);

CREATE TABLE claim_comments (
    campaign   INTEGER  NOT NULL,
    shard      SMALLINT NOT NULL,
    epoch      SMALLINT NOT NULL,
    seq        BIGINT   NOT NULL,
    comment    TEXT     NOT NULL,
    updated_at BIGINT   NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
);

ALTER TABLE campaigns ADD COLUMN ended_at BIGINT NOT NULL DEFAULT 0 CHECK (ended_at >= 0);
UPDATE campaigns SET ended_at = updated_at WHERE state = 'ended';

-- +goose Down
ALTER TABLE campaigns DROP COLUMN ended_at;
DROP TABLE claim_comments;
DROP TABLE claim_references;
