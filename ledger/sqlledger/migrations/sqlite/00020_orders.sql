-- What callers and administrators write about claims, and when a campaign was
-- ended by hand.

-- +goose Up
-- The caller's own reference of a claim. It is written when the claim is
-- answered, which may be before settling writes the claim's row: hence no
-- foreign key.
CREATE TABLE claim_references (
    campaign  INTEGER NOT NULL,
    shard     INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    reference TEXT    NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_references_by_reference ON claim_references (reference, campaign, shard, epoch, seq);

-- What an administrator noted about a claim. Most claims have no row.
CREATE TABLE claim_comments (
    campaign   INTEGER NOT NULL,
    shard      INTEGER NOT NULL,
    epoch      INTEGER NOT NULL,
    seq        INTEGER NOT NULL,
    comment    TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
) STRICT, WITHOUT ROWID;

-- 0 for a campaign that was not ended by hand. Of one that was ended before this
-- migration, the last change is known, which is the end or later.
ALTER TABLE campaigns ADD COLUMN ended_at INTEGER NOT NULL DEFAULT 0 CHECK (ended_at >= 0);
UPDATE campaigns SET ended_at = updated_at WHERE state = 'ended';

-- +goose Down
ALTER TABLE campaigns DROP COLUMN ended_at;
DROP TABLE claim_comments;
DROP TABLE claim_references;
