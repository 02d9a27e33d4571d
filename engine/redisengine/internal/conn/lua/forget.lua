-- Takes a shard of which nothing is left off the list, unless it was listed since.
-- KEYS[1] dibs:shards
-- ARGV[1] the shard, ARGV[2] the step of its opening at which it was on the list
-- before anything of it was looked for; see list.lua
-- Returns {ok, clock in ms, 0, 0}
-- Retry: safe; a shard that is opened again is at another step.
local shards_key, member, step = KEYS[1], ARGV[1], tonumber(ARGV[2])

local now = clock_ms()
if not typed(KEYS, {'hash'}) then return {'wrong_type', now, 0, 0} end
if tonumber(redis.call('HGET', shards_key, member) or -1) == step then
  redis.call('HDEL', shards_key, member)
end
return {'ok', now, 0, 0}
