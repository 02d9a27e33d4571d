-- Ends a lease, so that another process takes over at once.
-- KEYS[1] dibs:{c:s}:settler
-- ARGV[1] the process
-- Returns {ok, clock in ms, 0, 0}
-- Retry: safe; the lease of another process stays.
local settler_key, process = KEYS[1], ARGV[1]

local now = clock_ms()
if not typed(KEYS, {'string'}) then return {'wrong_type', now, 0, 0} end
if redis.call('GET', settler_key) == process then redis.call('DEL', settler_key) end
return {'ok', now, 0, 0}
