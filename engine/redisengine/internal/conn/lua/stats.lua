-- Counts a shard.
-- KEYS[1] dibs:{c:s}:meta; of a campaign that shares a limit per product also KEYS[2]
-- dibs:{product/p:s}:counted
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it
-- Returns {ok, clock in ms, epoch, seq, units left, units granted, time of the last
-- entry in ms, buckets, version, epoch and seq of the place that is settled, units
-- that left by transfers less those that came, the number of a campaign that shares
-- the limit and is not counted, 0 for none, shards of the campaign, 0 when not known}
-- Retry: safe; it only reads.
local meta_key, counted_key, seen_epoch, seen_seq = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local now = clock_ms()
if not typed(KEYS, counted_key and {'hash', 'hash'} or {'hash'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
local uncounted = 0
if counted_key then
  local product = product_of(meta_key, counted_key, s.epoch)
  if not product then return {'not_open', now, 0, 0} end
  uncounted = product.uncounted or 0
end
local beside = redis.call('HMGET', meta_key, 'settled_epoch', 'settled_seq', 'moved')
return {'ok', now, s.epoch, s.seq, text(s.left), text(s.granted), text(s.at), s.buckets, text(s.version),
  whole(beside[1] or '0') or 0, whole(beside[2] or '0') or 0, text(whole(beside[3] or '0') or 0), uncounted, s.shards}
