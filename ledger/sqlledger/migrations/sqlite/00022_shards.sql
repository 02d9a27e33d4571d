-- Red packets over several shards.

-- +goose Up
-- How far the claims of a shard of a red packet are credited; every shard has a
-- row. It moves with the credits, in one transaction, which locks the red packet's
-- row first.
CREATE TABLE packet_positions (
    campaign INTEGER NOT NULL REFERENCES packets (campaign),
    shard    INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    PRIMARY KEY (campaign, shard)
) STRICT, WITHOUT ROWID;

-- Red packets had one shard.
INSERT INTO packet_positions (campaign, shard, epoch, seq) SELECT campaign, 0, credit_epoch, credit_seq FROM packets;
ALTER TABLE packets DROP COLUMN credit_epoch;
ALTER TABLE packets DROP COLUMN credit_seq;

-- +goose Down
ALTER TABLE packets ADD COLUMN credit_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE packets ADD COLUMN credit_seq INTEGER NOT NULL DEFAULT 0;
UPDATE packets SET credit_epoch = (SELECT epoch FROM packet_positions k WHERE k.campaign = packets.campaign AND k.shard = 0),
    credit_seq = (SELECT seq FROM packet_positions k WHERE k.campaign = packets.campaign AND k.shard = 0);
DROP TABLE packet_positions;
