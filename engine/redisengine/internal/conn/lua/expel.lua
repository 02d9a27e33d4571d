-- Takes a shard out of which a process has seen more than there is now: its
-- history has forked, and nobody is answered from it any more.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:state:{c:s}
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it
-- Returns {ok, clock in ms, 0, 0}
-- Retry: safe; a shard that was opened anew since is not behind.
local meta_key, state_key, seen_epoch, seen_seq = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local now = clock_ms()
if not typed(KEYS, {'hash', 'string'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s and refusal[1] == 'behind' then
  even_when_full(meta_key)
  redis.call('HSET', meta_key, 'state', 'shut')
  redis.call('DEL', state_key)
end
return {'ok', now, 0, 0}
