-- Counts a shard.
-- KEYS[1] dibs:{c:s}:meta
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it
-- Returns {ok, clock in ms, epoch, seq, units left, units granted, time of the last
-- entry in ms, buckets, version, epoch and seq of the place that is settled}
-- Retry: safe; it only reads.
local meta_key, seen_epoch, seen_seq = KEYS[1], ARGV[1], ARGV[2]

local now = clock_ms()
if not typed(KEYS, {'hash'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
local settled = redis.call('HMGET', meta_key, 'settled_epoch', 'settled_seq')
return {'ok', now, s.epoch, s.seq, text(s.left), text(s.granted), text(s.at), s.buckets, text(s.version),
  whole(settled[1] or '0') or 0, whole(settled[2] or '0') or 0}
