-- Gives a claim's stock, its items and the user's allowance back, once.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:holdings, KEYS[3] dibs:{c:s}:places,
-- KEYS[4] dibs:{c:s}:journal, KEYS[5] dibs:{c:s}:free, KEYS[6] dibs:{c:s}:issued,
-- KEYS[7] dibs:state:{c:s}; of a campaign that shares a limit per product also KEYS[8]
-- dibs:{product/p:s}:counted, KEYS[9] dibs:{product/p:s}:units
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it, ARGV[3] and ARGV[4]
-- epoch and seq of the claim, ARGV[5] epoch of the command
-- Returns {ok, clock in ms, epoch, seq} or {not_found | stale | too_new, …}
-- Retry: safe; a claim that is released changes nothing any more.
local meta_key, holdings_key, places_key, journal_key, free_key, issued_key, state_key, counted_key, units_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local seen_epoch, seen_seq = ARGV[1], ARGV[2]
local epoch, seq, command_epoch = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash', 'stream', 'list', 'hash', 'string'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
if command_epoch ~= s.epoch then
  return {command_epoch < s.epoch and 'stale' or 'too_new', now, s.epoch, s.seq}
end
local product
if counted_key then
  if not typed({counted_key, units_key}, {'hash', 'hash'}) then return {'wrong_type', now, 0, 0} end
  product = product_of(meta_key, counted_key, s.epoch)
  if not product then return {'not_open', now, 0, 0} end
end
local field, bucket, user, at = at_place(places_key, holdings_key, epoch, seq)
if not field then return {'not_found', now, s.epoch, s.seq} end
local _, _, quantity, released = record_at(bucket, at)
if released then return {'ok', now, s.epoch, s.seq} end
if s.seq >= LAST_SEQ then return {'spent', now, s.epoch, s.seq} end
local elements, numbers = {}, ''
if s.items == 1 then
  elements, numbers = items_in(redis.call('HGET', issued_key, place(epoch, seq)) or '')
  if #elements ~= quantity then return {'corrupt', now, s.epoch, s.seq} end
end
if s.left + quantity >= WHOLE then return {'range', now, s.epoch, s.seq} end

local entry = pack('>BBI6HI4I4', FORMAT, 3, now, epoch, seq, quantity) .. numbers
local added, refused = journal(journal_key, s.epoch, s.seq + 1, entry)
if not added then return unwritten(refused, now, s.epoch, s.seq) end
local mark = pack('>H', unpack_bytes('>H', bucket, at + MARK_AT) + RELEASED)
redis.call('HSET', holdings_key, field, sub(bucket, 1, at + MARK_AT - 1) .. mark .. sub(bucket, at + SEQ_AT))
if product then
  local run = product.add(redis.call('HGET', units_key, user) or '', -quantity)
  if run == '' then
    redis.call('HDEL', units_key, user)
  else
    redis.call('HSET', units_key, user, run)
  end
end
in_portions('RPUSH', free_key, elements, 4000)
redis.call('HSET', meta_key, 'seq', text(s.seq + 1), 'left', text(s.left + quantity),
  'granted', text(s.granted - quantity), 'at', text(now))
if s.left == 0 then tell(state_key, s.epoch, s.seq + 1, s.version) end
return {'ok', now, s.epoch, s.seq + 1}
