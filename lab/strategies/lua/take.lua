-- Takes from a cached count, and renews its lifetime, if it is there.
-- KEYS[1] the count
-- ARGV[1] what to add, ARGV[2] the lifetime in seconds
-- Returns what is left, which may be below zero; nil when no count is there.
-- Retry: not safe, it takes again.
local count, change, life = KEYS[1], ARGV[1], ARGV[2]
if redis.call('EXISTS', count) == 1 then
  redis.call('EXPIRE', count, life)
  return redis.call('INCRBY', count, change)
end
return nil
