-- Takes a shard out and forgets what was held of it, for a new load; the journal
-- stays. From here on nothing is decided on the shard until open.lua, which must come
-- within LOAD_MS.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:holdings, KEYS[3] dibs:{c:s}:places,
-- KEYS[4] dibs:{c:s}:journal, KEYS[5] dibs:{c:s}:free, KEYS[6] dibs:{c:s}:issued,
-- KEYS[7] dibs:{c:s}:refs, KEYS[8] dibs:state:{c:s}; of a campaign that shares a limit
-- per product also KEYS[9] dibs:{product/p:s}:counted, KEYS[10] dibs:{product/p:s}:units,
-- which begin anew on each run of the server
-- ARGV[1] the epoch to open, ARGV[2] the loader's token, ARGV[3] the numbers of shards that
-- the loader knows the campaign to have or have had, such as ,2,4,
-- Returns {ok, clock in ms, epoch, 0} or {stale, …} when a later epoch is open or
-- being loaded, or {newer, …} when a later version of dibs has written the shard, or
-- {undivided, …} when the shard goes by a number of shards that the loader does not know
-- Retry: safe with the same token, as long as nothing was loaded.
local meta_key, holdings_key, places_key, journal_key, free_key, issued_key, refs_key, state_key, counted_key, units_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local epoch, token, divided = tonumber(ARGV[1]), ARGV[2], ARGV[3]

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash', 'stream', 'list', 'hash', 'set', 'string'}) then return {'wrong_type', now, 0, 0} end
if counted_key and not typed({counted_key, units_key}, {'hash', 'hash'}) then return {'wrong_type', now, 0, 0} end
local got = redis.call('HMGET', meta_key, 'state', 'epoch', 'token', 'format', 'replaces', 'shards')
local format = got[4] and whole(got[4]) or 0
if format > SHARING then return {'newer', now, 0, 0, text(format)} end
local present = got[2] and whole(got[2]) or 0
if epoch < present or epoch == present and not (got[1] == 'loading' and got[3] == token) then
  return {'stale', now, present, 0}
end
-- Its users may have claims by that number, which a load would not look for.
if got[6] and not string.find(divided, ',' .. got[6] .. ',', 1, true) then return {'undivided', now, present, 0} end
-- The load may take the memory that is given back here.
local replaces = (got[1] == 'open' or got[1] == 'shut' or got[5] == '1') and '1' or '0'
redis.call('UNLINK', meta_key, holdings_key, places_key, free_key, issued_key, refs_key, state_key)
redis.call('HSET', meta_key, 'state', 'loading', 'epoch', text(epoch), 'token', token, 'server', run_id(),
  'format', text(counted_key and SHARING or FORMAT), 'replaces', replaces)
if got[6] then redis.call('HSET', meta_key, 'shards', got[6]) end
if counted_key then
  local counted = redis.call('HMGET', counted_key, 'run', 'id')
  if counted[1] ~= run_id() then
    redis.call('UNLINK', counted_key, units_key)
    redis.call('HSET', counted_key, 'run', run_id(), 'id', token)
    counted[2] = token
  end
  redis.call('HSET', meta_key, 'counting', counted[2])
end
-- The other keys of the load expire later than this one, without which it is not opened.
redis.call('PEXPIRE', meta_key, LOAD_MS)
local keeps_ms = redis.call('PTTL', journal_key)
if keeps_ms >= 0 and keeps_ms < LOAD_MS then redis.call('PEXPIRE', journal_key, LOAD_MS) end
return {'ok', now, epoch, 0}
