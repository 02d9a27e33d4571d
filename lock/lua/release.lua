-- Gives a lock back, or a place in the line, and hands the lock to who is first in it.
-- KEYS[1] the lock, KEYS[2] the line, KEYS[3] who in the line was heard of, KEYS[4] the readers
-- ARGV[1] the owner's token, ARGV[2] w or r, ARGV[3] ms for the next owner to answer, ARGV[4] 1 to leave the line too
-- Returns 1 when the lock was the owner's, else 0.
-- Retry: safe, the second time it is not the owner's.
local lock, line, heard, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, mode, grace, leave = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if leave == '1' then
  redis.call('ZREM', line, mode .. token)
  redis.call('ZREM', heard, mode .. token)
end
local has = redis.call('HMGET', lock, 'owner', 'until', 'fence')
if mode == 'w' then
  if has[1] ~= token or tonumber(has[2] or 0) <= now then return 0 end
  redis.call('HDEL', lock, 'owner', 'until')
else
  if redis.call('ZREM', readers, token) == 0 then return 0 end
end
local first = redis.call('ZRANGE', line, 0, 0)[1]
if not first then return 1 end
redis.call('ZREMRANGEBYSCORE', readers, '-inf', now)
if redis.call('EXISTS', readers) == 1 then return 1 end
local fence = math.max(tonumber(has[3] or 0) + 1, time[1] * 1000000 + time[2])
while first do
  local seen = redis.call('ZSCORE', heard, first)
  local kind, next = string.sub(first, 1, 1), string.sub(first, 2)
  local alive = seen and tonumber(seen) > now
  if alive and kind == 'w' and redis.call('EXISTS', readers) == 1 then return 1 end
  redis.call('ZREM', line, first)
  redis.call('ZREM', heard, first)
  if alive then
    -- It is the next one's for a moment; it answers, or the moment passes.
    redis.call('HSET', lock, 'fence', string.format('%.0f', fence))
    if kind == 'w' then
      redis.call('HSET', lock, 'owner', next, 'until', string.format('%.0f', now + grace))
    else
      redis.call('ZADD', readers, now + grace, next)
    end
    redis.call('PUBLISH', string.match(next, '^([^.]+)'), next)
    if kind == 'w' then return 1 end
  end
  first = redis.call('ZRANGE', line, 0, 0)[1]
end
return 1
