-- Gives a lock back if it is still the owner's.
-- KEYS[1] the lock
-- ARGV[1] the owner's token
-- Returns 1 when it was given back, else 0.
-- Retry: safe, the second time there is nothing to give back.
local lock, owner = KEYS[1], ARGV[1]
if redis.call('GET', lock) == owner then
  return redis.call('DEL', lock)
end
return 0
