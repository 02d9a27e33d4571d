-- Makes a process the one that settles and loads a shard, until the lease ends,
-- and notes how far the ledger is while the shard is open, also when Redis is full.
-- KEYS[1] dibs:{c:s}:settler, KEYS[2] dibs:{c:s}:meta
-- ARGV[1] the process, ARGV[2] how long the lease lasts, in ms, ARGV[3] and ARGV[4]
-- epoch and seq of the place that the ledger has settled; 0 and 0 leave what was noted: a
-- ledger that went back in time shows by it, until the shard is loaded again
-- Returns {ok, clock in ms, 0, 0} or {held, …} while another process has the lease
-- Retry: safe; it starts the lease's time anew.
local settler_key, meta_key = KEYS[1], KEYS[2]
local process, lease_ms, epoch, seq = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local now = clock_ms()
if not typed(KEYS, {'string', 'hash'}) then return {'wrong_type', now, 0, 0} end
local holder = redis.call('GET', settler_key)
if holder and holder ~= process then return {'held', now, 0, 0} end
even_when_full(meta_key)
redis.call('SET', settler_key, process, 'PX', lease_ms)
local got = redis.call('HMGET', meta_key, 'state', 'settled_epoch', 'settled_seq')
if got[1] == 'open' and epoch ~= '0' and (got[2] ~= epoch or got[3] ~= seq) then
  redis.call('HSET', meta_key, 'settled_epoch', epoch, 'settled_seq', seq)
end
return {'ok', now, 0, 0}
