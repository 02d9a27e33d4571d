-- The deployments of the engine: several of Redis, and which of them has which shard.

-- +goose Up
-- A deployment is a server, a Sentinel group or a Cluster. Its identity is a random text that
-- a node wrote into it; place is where nodes reached it last, without user and password.
CREATE TABLE deployments (
    number   INTEGER NOT NULL PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    place    TEXT NOT NULL,
    added_at INTEGER NOT NULL
) STRICT;

-- Deployment is the number of the one on which the shard was opened; 0 when it never was, when it
-- was opened inside of a process, or by a version that did not note it. The first deployment that
-- enters the table takes the shards of such a version.
ALTER TABLE positions ADD COLUMN deployment INTEGER NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE positions DROP COLUMN deployment;
DROP TABLE deployments;
