-- Forgets a shard that has ended and is settled, or what a load has left that was
-- broken off; its journal goes after a while.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:holdings, KEYS[3] dibs:{c:s}:places,
-- KEYS[4] dibs:{c:s}:journal, KEYS[5] dibs:{c:s}:free, KEYS[6] dibs:{c:s}:issued,
-- KEYS[7] dibs:{c:s}:refs, KEYS[8] dibs:{c:s}:settler,
-- KEYS[9] dibs:state:{c:s}, KEYS[10] dibs:{c:s}:end; of a campaign that shares a limit
-- per product also KEYS[11] dibs:{product/p:s}:counted, KEYS[12]
-- dibs:{product/p:s}:units: what it counted stays there while another one is open
-- ARGV[1] how long the journal is kept, in ms, ARGV[2] how long after its window a
-- campaign may be forgotten that nobody has ended, in ms, ARGV[3] the process,
-- ARGV[4] how long it is kept where the journal ended, in ms, ARGV[5] the campaign
-- Returns {ok, clock in ms, 0, 0} or {not_open | not_over, …}, or {loading, …} while
-- another process has the lease of a shard that is being loaded
-- Retry: safe; the repeat finds the shard not open.
local meta_key, holdings_key, places_key, journal_key, free_key, issued_key, refs_key, settler_key, state_key, end_key, counted_key, units_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local keep_ms, grace_ms, process, end_ms, campaign = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash', 'stream', 'list', 'hash', 'set', 'string', 'string', 'string'}) then return {'wrong_type', now, 0, 0} end
if counted_key and not typed({counted_key, units_key}, {'hash', 'hash'}) then return {'wrong_type', now, 0, 0} end
-- A shard that is not open on this run of the server is of no use: a node that needs
-- it loads it anew.
local got = redis.call('HMGET', meta_key, 'state', 'closed', 'ends', 'server')
if got[1] == 'loading' then
  -- A loader renews the lease for as long as it works. One that was only slow finds
  -- its token gone, and loads anew.
  local loader = redis.call('GET', settler_key)
  if loader and loader ~= process then return {'loading', now, 0, 0} end
elseif got[1] ~= 'open' and got[1] ~= 'shut' then
  return {'not_open', now, 0, 0}
elseif got[1] == 'open' and got[4] == run_id() and got[2] ~= '2' and now < (whole(got[3] or '0') or 0) + grace_ms then
  -- The process that asks goes by its own clock, which may be ahead.
  return {'not_over', now, 0, 0}
end
redis.call('PEXPIRE', journal_key, keep_ms)
redis.call('UNLINK', meta_key, holdings_key, places_key, free_key, issued_key, refs_key, settler_key, state_key)
if counted_key then
  local counted, others = redis.call('HGETALL', counted_key), false
  for i = 1, #counted, 2 do
    local at = whole(counted[i]) and whole(counted[i + 1]) or 0
    if counted[i] ~= campaign then
      others = others or at > 0
    elseif at > 0 then
      redis.call('HSET', counted_key, campaign, text(-at))
    end
  end
  if not others then redis.call('UNLINK', counted_key, units_key) end
end
local journal_info = redis.pcall('XINFO', 'STREAM', journal_key)
for i = 1, #journal_info - 1, 2 do
  if journal_info[i] == 'last-generated-id' then redis.call('SET', end_key, journal_info[i + 1], 'PX', end_ms) end
end
return {'ok', now, 0, 0}
