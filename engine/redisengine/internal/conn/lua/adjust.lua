-- Changes a shard's stock by a command that counts once.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:refs, KEYS[3] dibs:{c:s}:journal,
-- KEYS[4] dibs:{c:s}:free, KEYS[5] dibs:state:{c:s}
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it, ARGV[3] epoch of the
-- command, 0 for a withdrawal in any, ARGV[4] its name, ARGV[5] the signed units,
-- ARGV[6] number of the first new item, -1 where items of the campaign stand in other
-- shards too, ARGV[7] the new items, a msgpack array of free-list elements, ARGV[8] 1
-- for a half of a transfer between shards, else 0
-- Returns {ok, clock in ms, epoch, seq} or {stale | too_new | gap | range, …} or
-- {too_many, …, units left}
-- Retry: safe; a name that was counted changes nothing any more.
local meta_key, refs_key, journal_key, free_key, state_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local seen_epoch, seen_seq, command_epoch, ref = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local delta, first_item, elements = whole(ARGV[5]), tonumber(ARGV[6]), cmsgpack.unpack(ARGV[7])
local transfer = ARGV[8] == '1'

local now = clock_ms()
if not typed(KEYS, {'hash', 'set', 'stream', 'list', 'string'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
if redis.call('SISMEMBER', refs_key, ref) == 1 then return {'ok', now, s.epoch, s.seq} end
if not delta or s.left + delta >= WHOLE then return {'range', now, s.epoch, s.seq} end
if (delta > 0 or command_epoch > 0) and command_epoch ~= s.epoch then
  return {command_epoch < s.epoch and 'stale' or 'too_new', now, s.epoch, s.seq}
end
if s.left + delta < 0 then return {'too_many', now, s.epoch, s.seq, text(s.left)} end
if #elements > 0 and first_item >= 0 and first_item ~= s.values then return {'gap', now, s.epoch, s.seq} end
if s.seq >= LAST_SEQ then return {'spent', now, s.epoch, s.seq} end
-- The units that left by transfers less those that came. This and the remainder together
-- stay the same.
local moved = transfer and whole(redis.call('HGET', meta_key, 'moved') or '0') or not transfer and 0
if not moved then return {'corrupt', now, s.epoch, s.seq} end
local numbers = {}
for i = 1, #elements do numbers[i] = sub(elements[i], 1, 4) end
if s.items == 1 and delta < 0 then
  -- Withdrawals take the items that would be granted last.
  local last = redis.call('LRANGE', free_key, text(delta), -1)
  if #last ~= -delta then return {'corrupt', now, s.epoch, s.seq} end
  for i = 1, #last do numbers[i] = sub(last[i], 1, 4) end
end

local entry = pack('>BBI6Bc0I1I7', FORMAT, 4, now, #ref, ref, delta < 0 and 1 or 0, math.abs(delta)) .. concat(numbers)
local added, refused = journal(journal_key, s.epoch, s.seq + 1, entry)
if not added then return unwritten(refused, now, s.epoch, s.seq) end
redis.call('SADD', refs_key, ref)
in_portions('RPUSH', free_key, elements, 4000)
if s.items == 1 and delta < 0 then redis.call('LTRIM', free_key, 0, text(delta - 1)) end
redis.call('HSET', meta_key, 'seq', text(s.seq + 1), 'left', text(s.left + delta),
  'values', text(s.values + #elements), 'at', text(now))
if transfer then redis.call('HSET', meta_key, 'moved', text(moved - delta)) end
if s.left == 0 or s.left + delta == 0 then tell(state_key, s.epoch, s.seq + 1, s.version) end
return {'ok', now, s.epoch, s.seq + 1}
