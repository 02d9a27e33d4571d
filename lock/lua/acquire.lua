-- Takes a lock, or stands in line for it, in the order of arrival.
-- KEYS[1] the lock, KEYS[2] the line, KEYS[3] who in the line was heard of, KEYS[4] the readers
-- ARGV[1] the owner's token, ARGV[2] w or r, ARGV[3] lifetime in ms, ARGV[4] 1 to stand in line, ARGV[5] ms after which who is not heard of has left
-- Returns the fence and 0; or 0 and in how many ms to ask again at the latest.
-- Retry: safe, the owner gets the same fence again, and keeps the place in the line.
local lock, line, heard, readers = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, mode, life, stand, patience = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local has = redis.call('HMGET', lock, 'owner', 'until', 'fence')
local owner, till = has[1], tonumber(has[2] or 0)
if till <= now then owner = false end

local function keep(fence)
  if mode == 'w' then
    redis.call('HSET', lock, 'owner', token, 'until', string.format('%.0f', now + life), 'fence', fence)
  else
    redis.call('ZADD', readers, now + life, token)
    redis.call('HSET', lock, 'fence', fence)
  end
  return {tonumber(fence), 0}
end
if mode == 'w' and owner == token then
  return keep(has[3])
end
local crowd = redis.call('EXISTS', line, readers) > 0
local reading, first = 0, false
if crowd then
  redis.call('ZREMRANGEBYSCORE', readers, '-inf', now)
  if mode == 'r' and redis.call('ZSCORE', readers, token) then
    return keep(has[3])
  end
  reading = redis.call('ZCARD', readers)
  first = redis.call('ZRANGE', line, 0, 0)[1]
  while first do
    local seen = redis.call('ZSCORE', heard, first)
    if seen and tonumber(seen) > now then break end
    redis.call('ZREM', line, first)
    redis.call('ZREM', heard, first)
    first = redis.call('ZRANGE', line, 0, 0)[1]
  end
end
local me = mode .. token
if not owner and (not first or first == me) and (mode == 'r' or reading == 0) then
  if first == me then
    redis.call('ZREM', line, me)
    redis.call('ZREM', heard, me)
    -- Readers behind a reader come in with it.
    local next = redis.call('ZRANGE', line, 0, 0)[1]
    if mode == 'r' and next and string.sub(next, 1, 1) == 'r' then
      redis.call('PUBLISH', string.match(next, '^.([^.]+)'), string.sub(next, 2))
    end
  end
  -- Higher than every earlier one, even when the earlier one is forgotten: the
  -- clock goes on meanwhile.
  local fence = math.max(tonumber(has[3] or 0) + 1, time[1] * 1000000 + time[2])
  local reply = keep(string.format('%.0f', fence))
  redis.call('EXPIRE', lock, 86400)
  return reply
end
if stand ~= '1' then return {0, 0} end
if not redis.call('ZSCORE', line, me) then
  redis.call('ZADD', line, redis.call('HINCRBY', lock, 'ticket', 1), me)
end
redis.call('ZADD', heard, now + patience, me)
redis.call('PEXPIRE', line, patience * 2)
redis.call('PEXPIRE', heard, patience * 2)
-- Waiters near the front ask more often: one before them may have died.
local again = math.min(patience / 3, 500 * (1 + redis.call('ZRANK', line, me)))
if owner and (not first or first == me) then again = math.min(again, till - now + 1) end
return {0, math.floor(again)}
