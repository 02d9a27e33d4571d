-- Red packets over several shards; migrations/sqlite says more. Every statement can
-- be run again: the columns are copied and dropped while they are there.

-- +goose Up
CREATE TABLE IF NOT EXISTS packet_positions (
    campaign INTEGER  NOT NULL,
    shard    SMALLINT NOT NULL,
    epoch    INTEGER  NOT NULL,
    seq      BIGINT   NOT NULL,
    PRIMARY KEY (campaign, shard),
    FOREIGN KEY (campaign) REFERENCES packets (campaign)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

SET @change = (SELECT IF(COUNT(*) = 0, 'DO 0', 'INSERT IGNORE INTO packet_positions (campaign, shard, epoch, seq)
    SELECT campaign, 0, credit_epoch, credit_seq FROM packets')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'packets' AND column_name = 'credit_seq');
PREPARE change_packets FROM @change;
EXECUTE change_packets;
SET @change = (SELECT IF(COUNT(*) = 0, 'DO 0', 'ALTER TABLE packets DROP COLUMN credit_epoch, DROP COLUMN credit_seq')
    FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'packets' AND column_name = 'credit_seq');
PREPARE change_packets FROM @change;
EXECUTE change_packets;
DEALLOCATE PREPARE change_packets;

-- +goose Down
ALTER TABLE packets ADD COLUMN credit_epoch INTEGER NOT NULL DEFAULT 0, ADD COLUMN credit_seq BIGINT NOT NULL DEFAULT 0;
UPDATE packets SET credit_epoch = (SELECT epoch FROM packet_positions k WHERE k.campaign = packets.campaign AND k.shard = 0),
    credit_seq = (SELECT seq FROM packet_positions k WHERE k.campaign = packets.campaign AND k.shard = 0);
DROP TABLE IF EXISTS packet_positions;
