-- Which server holds a shard, and which servers are alive.

-- +goose Up
-- Server is the run of the server on which the shard's epoch was opened; empty when
-- it was opened inside of a process, or by a version that did not note it.
ALTER TABLE positions ADD COLUMN server TEXT NOT NULL DEFAULT '';

-- When a node saw each server last, by the clock that all processes share. A server
-- that knows less of a shard may take it over once the other was not seen for a while.
CREATE TABLE engine_servers (
    server  TEXT NOT NULL PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE engine_servers;
ALTER TABLE positions DROP COLUMN server;
