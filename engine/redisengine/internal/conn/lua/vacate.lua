-- Marks a shard of which nothing is there, before it is taken off the list: the step of
-- a load that is on its way still would bring back what nobody looks for.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:journal, KEYS[3] dibs:{c:s}:vacant
-- ARGV[1] the epoch up to which shut.lua refuses loads, ARGV[2] how long, in ms
-- Returns {ok, clock in ms, 0, 0} or {held, …} when something is there
-- Retry: safe; it marks the same again.
local meta_key, journal_key, vacant_key = KEYS[1], KEYS[2], KEYS[3]
local epoch, keep_ms = tonumber(ARGV[1]), ARGV[2]

local now = clock_ms()
if not typed(KEYS, {'hash', 'stream', 'string'}) then return {'wrong_type', now, 0, 0} end
if redis.call('EXISTS', meta_key, journal_key) > 0 then return {'held', now, 0, 0} end
even_when_full(meta_key)
local marked = whole(redis.call('GET', vacant_key) or '0') or 0
redis.call('SET', vacant_key, text(math.max(marked, epoch)), 'PX', keep_ms)
return {'ok', now, 0, 0}
