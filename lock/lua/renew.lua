-- Renews a lock while it is the owner's, and raises its fence.
-- KEYS[1] the lock, KEYS[2] the readers
-- ARGV[1] the owner's token, ARGV[2] w or r, ARGV[3] lifetime in ms, ARGV[4] the least that the fence must be
-- Returns 1 when it was renewed, 0 when it is not the owner's.
-- Retry: safe.
local lock, readers = KEYS[1], KEYS[2]
local token, mode, life, least = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local has = redis.call('HMGET', lock, 'owner', 'until', 'fence')
if mode == 'w' then
  if has[1] ~= token or tonumber(has[2] or 0) <= now then return 0 end
  redis.call('HSET', lock, 'until', string.format('%.0f', now + life))
else
  local till = redis.call('ZSCORE', readers, token)
  if not till or tonumber(till) <= now then return 0 end
  redis.call('ZADD', readers, now + life, token)
end
if tonumber(has[3] or 0) < least then
  redis.call('HSET', lock, 'fence', string.format('%.0f', least))
end
redis.call('EXPIRE', lock, 86400)
return 1
