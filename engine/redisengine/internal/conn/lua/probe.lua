-- Tries the commands that the scripts use, and removes what it wrote.
-- KEYS[1] dibs:{probe}:meta, KEYS[2] dibs:{probe}:journal, KEYS[3] dibs:{probe}:free,
-- KEYS[4] dibs:{probe}:refs, KEYS[5] dibs:{probe}:settler, KEYS[6] dibs:state:{probe}
-- ARGV: none.
-- Returns {ok, clock in ms, 0, 0, names of the commands that were refused}
-- Retry: safe; it leaves nothing.
local hash, stream, list, set, lease, state = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]

local reply = {'ok', clock_ms(), 0, 0}
local function try(...)
  local result = redis.pcall(...)
  if type(result) == 'table' and result.err then
    reply[#reply + 1] = (...) .. ' (' .. result.err .. ')'
  end
end
try('INFO', 'server')
-- First, since a full Redis then refuses none of the others: see even_when_full.
try('HDEL', hash, 'b')
try('HSET', hash, 'a', '1')
try('HGET', hash, 'a')
try('HMGET', hash, 'a', 'b')
try('HSCAN', hash, '0')
try('HINCRBY', hash, 'a', '1')
try('HGETALL', hash)
try('TYPE', hash)
try('EXISTS', hash)
try('XADD', stream, '1-1', 'p', '')
try('XRANGE', stream, '-', '+', 'COUNT', '1')
try('XINFO', 'STREAM', stream)
try('XLEN', stream)
try('XTRIM', stream, 'MINID', '1-2')
try('PEXPIRE', stream, '60000')
try('PTTL', stream)
try('PERSIST', stream)
try('RPUSH', list, 'a')
try('LRANGE', list, '0', '-1')
try('LLEN', list)
try('LTRIM', list, '1', '-1')
try('SADD', set, 'a')
try('SISMEMBER', set, 'a')
try('SET', lease, 'a', 'PX', '60000')
try('GET', lease)
try('SET', state, 'a')
try('DEL', state)
-- The commands that waiting rooms use beside these.
try('TIME')
try('HLEN', hash)
try('PEXPIREAT', hash, '4102444800000')
try('UNLINK', hash, stream, list, set, lease)
return reply
