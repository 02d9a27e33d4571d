-- Names the run of the server that has a shard's keys.
-- KEYS[1] dibs:{c:s}:meta
-- ARGV: none.
-- Returns {ok, clock in ms, 0, 0, the run's id}
-- Retry: safe; it only reads.
local meta_key = KEYS[1]

local now = clock_ms()
if not typed(KEYS, {'hash'}) then return {'wrong_type', now, 0, 0} end
return {'ok', now, 0, 0, string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''}
