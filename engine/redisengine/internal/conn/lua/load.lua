-- Adds one portion of a load to one key of a shard that is being loaded. A portion that
-- takes the place of one that was shut is added also when Redis is full.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] the key to fill
-- ARGV[1] the loader's token, ARGV[2] the key's type: hash, list or set, ARGV[3] how
-- many elements a list has before, ARGV[4] the portion, a msgpack array
-- Returns {ok, clock in ms, 0, 0} or {stale | superseded, …} when another loader has
-- taken over, or the load is not whole
-- Retry: safe; a portion that a list has already is not added again.
local meta_key, key = KEYS[1], KEYS[2]
local token, kind, before, portion = ARGV[1], ARGV[2], tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])

local now = clock_ms()
if not typed(KEYS, {'hash', kind}) then return {'wrong_type', now, 0, 0} end
local refused = not_loading(meta_key, token, now)
if refused then return refused end
if redis.call('HGET', meta_key, 'replaces') == '1' then even_when_full(meta_key) end
if kind == 'hash' then
  in_portions('HSET', key, portion, 4000)
elseif kind == 'set' then
  in_portions('SADD', key, portion, 4000)
else
  local has = redis.call('LLEN', key)
  if has == before then
    in_portions('RPUSH', key, portion, 4000)
  elseif has ~= before + #portion then
    return {'corrupt', now, 0, 0}
  end
end
redis.call('PEXPIRE', key, LOAD_MS)
return {'ok', now, 0, 0}
