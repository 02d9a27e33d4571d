-- Tells what a shard refuses everybody with, for a process that refuses by itself
-- until it hears that this may have changed.
-- KEYS[1] dibs:{c:s}:meta
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it
-- Returns {ok, clock in ms, epoch, seq, units left, units granted, 0 open, 1 paused,
-- 2 ended, start in ms, end in ms, 1 when the limit comes before the stock, shards of
-- the campaign, 0 when not known}
-- Retry: safe; it only reads.
local meta_key, seen_epoch, seen_seq = KEYS[1], ARGV[1], ARGV[2]

local now = clock_ms()
if not typed(KEYS, {'hash'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
return {'ok', now, s.epoch, s.seq, text(s.left), text(s.granted), text(s.closed), text(s.starts), text(s.ends),
  text(s.limit_first), text(s.shards)}
