-- Takes a shard of which nothing is left off the list, unless it was opened since.
-- KEYS[1] dibs:shards
-- ARGV[1] the shard, ARGV[2] how often it had been opened
-- Returns {ok, clock in ms, 0, 0}
-- Retry: safe; a shard that is opened again has another count.
local shards_key, member, opened = KEYS[1], ARGV[1], tonumber(ARGV[2])

local now = clock_ms()
if not typed(KEYS, {'hash'}) then return {'wrong_type', now, 0, 0} end
if tonumber(redis.call('HGET', shards_key, member) or -1) == opened then
  redis.call('HDEL', shards_key, member)
end
return {'ok', now, 0, 0}
