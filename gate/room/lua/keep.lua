-- Keeps a campaign's waiting room for longer, since the campaign ends later.
-- KEYS[1] dibs:{c:room}:meta, KEYS[2..] others of its keys
-- ARGV[1] when the keys expire, in ms, ARGV[2] 1 when with these all of them are done,
-- else 0
-- Returns {1 when there is something to do, else 0: there is no room yet, or all was
-- done before}
-- Retry: safe; it sets what is set.
local meta_key = KEYS[1]
local expire, last = tonumber(ARGV[1]), ARGV[2] == '1'

if redis.call('EXISTS', meta_key) == 0 then return {0} end
if tonumber(redis.call('HGET', meta_key, 'kept_until') or 0) >= expire then return {0} end
for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, ARGV[1]) end
if last then redis.call('HSET', meta_key, 'kept_until', ARGV[1]) end
return {1}
