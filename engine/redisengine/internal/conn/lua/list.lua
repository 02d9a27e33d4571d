-- Puts a shard on the list of all shards, also when Redis is full, and notes at
-- which step of its opening.
-- KEYS[1] dibs:shards
-- ARGV[1] the shard, ARGV[2] the step: twice the epoch before the shard is shut, and
-- one more once it is
-- Returns {ok, clock in ms, 0, 0}
-- Retry: safe; it notes the same again.
local shards_key, member, step = KEYS[1], ARGV[1], ARGV[2]

local now = clock_ms()
if not typed(KEYS, {'hash'}) then return {'wrong_type', now, 0, 0} end
even_when_full(shards_key)
redis.call('HSET', shards_key, member, step)
return {'ok', now, 0, 0}
