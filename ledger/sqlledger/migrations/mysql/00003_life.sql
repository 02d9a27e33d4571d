-- The claim's life after the grant; migrations/sqlite says what the tables are
-- for. A change of a table that is there already is made only when its column
-- is missing, so that it can be run again. These databases have no indexes of
-- some rows: the deadline is a column that others have not, and NULL there.

-- +goose Up
CREATE TABLE IF NOT EXISTS claim_events (
    campaign INTEGER     NOT NULL,
    shard    SMALLINT    NOT NULL,
    epoch    SMALLINT    NOT NULL,
    seq      BIGINT      NOT NULL,
    n        INTEGER     NOT NULL CHECK (n >= 1),
    step     VARCHAR(16) NOT NULL,
    status   SMALLINT    NOT NULL CHECK (status IN (-1, 0, 1, 2)),
    at       BIGINT      NOT NULL,
    facts    BLOB        NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq, n),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS payments (
    campaign INTEGER      NOT NULL,
    shard    SMALLINT     NOT NULL,
    epoch    SMALLINT     NOT NULL,
    seq      BIGINT       NOT NULL,
    ref      VARCHAR(255) NOT NULL,
    amount   BIGINT       NOT NULL CHECK (amount >= 0),
    currency VARCHAR(8)   NOT NULL,
    refunded BIGINT       NOT NULL CHECK (refunded >= 0),
    due      SMALLINT     NOT NULL CHECK (due IN (0, 1)),
    at       BIGINT       NOT NULL,
    PRIMARY KEY (campaign, shard, epoch, seq),
    FOREIGN KEY (campaign, shard, epoch, seq) REFERENCES claims (campaign, shard, epoch, seq),
    CHECK (refunded <= amount)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE claims
    ADD COLUMN steps INTEGER NOT NULL DEFAULT 0 CHECK (steps >= 0),
    ADD COLUMN due_at BIGINT GENERATED ALWAYS AS (CASE WHEN status = 0 AND pay_by > 0 THEN pay_by END) VIRTUAL,
    ADD INDEX claims_due (due_at)')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'claims' AND column_name = 'steps');
PREPARE change_claims FROM @change;
EXECUTE change_claims;
DEALLOCATE PREPARE change_claims;

SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE campaigns
    ADD COLUMN valid_for_ms BIGINT NOT NULL DEFAULT 0 CHECK (valid_for_ms >= 0),
    ADD COLUMN valid_until BIGINT NOT NULL DEFAULT 0 CHECK (valid_until >= 0)')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'campaigns' AND column_name = 'valid_for_ms');
PREPARE change_campaigns FROM @change;
EXECUTE change_campaigns;
DEALLOCATE PREPARE change_campaigns;

-- +goose Down
ALTER TABLE campaigns DROP COLUMN valid_until, DROP COLUMN valid_for_ms;
DROP TABLE IF EXISTS payments;
DROP TABLE IF EXISTS claim_events;
ALTER TABLE claims DROP INDEX claims_due, DROP COLUMN due_at, DROP COLUMN steps;
