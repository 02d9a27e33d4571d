-- Takes a shard out: nothing is decided on it until it is loaded again. It needs no
-- memory: a full Redis must not go on with a history that was given up.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:state:{c:s}
-- ARGV: none.
-- Returns {ok, clock in ms, 0, 0}
-- Retry: safe; a shard that is not open stays as it is.
local meta_key, state_key = KEYS[1], KEYS[2]

local now = clock_ms()
if not typed(KEYS, {'hash', 'string'}) then return {'wrong_type', now, 0, 0} end
if redis.call('HGET', meta_key, 'state') == 'open' then
  even_when_full(meta_key)
  redis.call('HSET', meta_key, 'state', 'shut')
  redis.call('DEL', state_key)
end
return {'ok', now, 0, 0}
