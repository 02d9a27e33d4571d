-- Announcements of campaigns to followers; migrations/sqlite says what the tables are for.
-- Every statement can be run again.

-- +goose Up
SET @change = (SELECT IF(COUNT(*) > 0, 'DO 0', 'ALTER TABLE followers
    ADD INDEX followers_by_rank (merchant, follows, standing DESC, seq), DROP INDEX followers_by_standing')
    FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = 'followers' AND index_name = 'followers_by_rank');
PREPARE change_followers FROM @change;
EXECUTE change_followers;
DEALLOCATE PREPARE change_followers;

CREATE TABLE IF NOT EXISTS announcements (
    number      BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id          VARCHAR(64)   NOT NULL,
    campaign    INTEGER       NOT NULL,
    active      INTEGER,
    campaign_id VARCHAR(64)   NOT NULL,
    merchant    VARCHAR(64)   NOT NULL,
    message     VARCHAR(1000) NOT NULL,
    state       VARCHAR(16)   NOT NULL CHECK (state IN ('running', 'paused', 'done', 'cancelled')),
    why         VARCHAR(1000) NOT NULL,
    threshold   BIGINT        NOT NULL CHECK (threshold >= 0),
    first_most  BIGINT        NOT NULL CHECK (first_most >= 0),
    rate        BIGINT        NOT NULL CHECK (rate > 0),
    followers   BIGINT        NOT NULL CHECK (followers >= 0),
    up_to       BIGINT        NOT NULL,
    enqueued    BIGINT        NOT NULL,
    events      BIGINT        NOT NULL,
    first_to    BIGINT        NOT NULL,
    first_done  SMALLINT      NOT NULL CHECK (first_done IN (0, 1)),
    rest_to     BIGINT        NOT NULL,
    paced_at    BIGINT        NOT NULL,
    owner       VARCHAR(191)  NOT NULL,
    lease_until BIGINT        NOT NULL,
    created_at  BIGINT        NOT NULL,
    updated_at  BIGINT        NOT NULL,
    finished_at BIGINT        NOT NULL,
    UNIQUE KEY announcements_by_id (id),
    UNIQUE KEY announcements_by_active (active),
    KEY announcements_by_campaign (campaign, number),
    KEY announcements_by_state (state, number),
    FOREIGN KEY (campaign) REFERENCES campaigns (number),
    FOREIGN KEY (merchant) REFERENCES merchants (id),
    CHECK (enqueued >= 0 AND enqueued <= followers)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS announcement_firsts (
    announcement BIGINT NOT NULL,
    seq          BIGINT NOT NULL,
    PRIMARY KEY (announcement, seq),
    FOREIGN KEY (announcement) REFERENCES announcements (number)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS announcement_rows (
    feed_row     BIGINT  NOT NULL PRIMARY KEY,
    announcement BIGINT  NOT NULL,
    recipients   INTEGER NOT NULL,
    KEY announcement_rows_by_announcement (announcement, feed_row),
    FOREIGN KEY (announcement) REFERENCES announcements (number)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS announcement_rows;
DROP TABLE IF EXISTS announcement_firsts;
DROP TABLE IF EXISTS announcements;
ALTER TABLE followers ADD INDEX followers_by_standing (merchant, follows, standing, user_id), DROP INDEX followers_by_rank;
