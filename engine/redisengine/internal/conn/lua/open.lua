-- Opens a shard whose load is complete, with the first entry of its epoch.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:journal, KEYS[3] dibs:state:{c:s},
-- KEYS[4] dibs:{c:s}:holdings, KEYS[5] dibs:{c:s}:places, KEYS[6] dibs:{c:s}:free,
-- KEYS[7] dibs:{c:s}:issued, KEYS[8] dibs:{c:s}:refs; of a campaign that shares a limit
-- per product also KEYS[9] dibs:{product/p:s}:counted
-- ARGV[1] the loader's token, ARGV[2] the epoch, ARGV[3] and ARGV[4] epoch and seq
-- of the entry before, ARGV[5] a msgpack array of names and values of the meta hash,
-- ARGV[6] the campaign, ARGV[7] a msgpack array of those that share its limit
-- Returns {ok, clock in ms, epoch, seq} or {stale | superseded | range
-- | regressed, …}
-- Retry: safe with the same token; a shard that it opened stays as it is.
local meta_key, journal_key, state_key, counted_key, token, epoch = KEYS[1], KEYS[2], KEYS[3], KEYS[9], ARGV[1], ARGV[2]
local before_epoch, before_seq, meta = tonumber(ARGV[3]), tonumber(ARGV[4]), cmsgpack.unpack(ARGV[5])
local campaign, others = ARGV[6], cmsgpack.unpack(ARGV[7])

local now = clock_ms()
if not typed(KEYS, {'hash', 'stream', 'string', 'hash', 'hash', 'list', 'hash', 'set', counted_key and 'hash'}) then return {'wrong_type', now, 0, 0} end
local got = redis.call('HMGET', meta_key, 'state', 'token', 'seq')
if got[1] == 'open' and got[2] == token then return {'ok', now, tonumber(epoch), tonumber(got[3])} end
local refused = not_loading(meta_key, token, now)
if refused then return refused end
if counted_key and redis.call('HGET', counted_key, 'id') ~= redis.call('HGET', meta_key, 'counting') then
  -- The last shard of the product was retired meanwhile, and what was counted has gone.
  return {'superseded', now, 0, 0}
end
for i = 2, #meta, 2 do
  if not whole(meta[i]) then return {'range', now, 0, 0} end
end
even_when_full(meta_key)
local entry = pack('>BBI6HI4', FORMAT, 1, now, before_epoch, before_seq)
local added, failed = journal(journal_key, tonumber(epoch), 1, entry)
if not added then return unwritten(failed, now, 0, 0) end
redis.call('HSET', meta_key, 'seq', '1', 'at', text(now), unpack(meta))
redis.call('HSET', meta_key, 'state', 'open')
if counted_key then
  redis.call('HSET', counted_key, campaign, epoch)
  for _, other in ipairs(others) do
    if not redis.call('HGET', counted_key, other) then redis.call('HSET', counted_key, other, '0') end
  end
end
redis.call('HDEL', meta_key, 'replaces')
for i, key in ipairs(KEYS) do
  if key ~= state_key and key ~= counted_key then redis.call('PERSIST', key) end
end
redis.call('SET', state_key, epoch)
return {'ok', now, tonumber(epoch), 1}
