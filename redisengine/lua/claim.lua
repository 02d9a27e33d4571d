-- Decides a batch of claims of one shard in one step: repeat, state, window,
-- stock, limit, grant, in this order for each.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:holdings, KEYS[3] dibs:{c:s}:places,
-- KEYS[4] dibs:{c:s}:journal, KEYS[5] dibs:{c:s}:free, KEYS[6] dibs:{c:s}:issued,
-- KEYS[7] dibs:state:{c:s}
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it, ARGV[3] deadline in
-- ms of Redis' clock, ARGV[4] the batch's token (8 bytes), ARGV[5] the buckets that
-- users are spread over, ARGV[6] the claims, a flat msgpack array of four each: the
-- bucket's field, name's length and name, key and quantity (8 and 4 bytes),
-- quantity, negative when only a repeat is asked for, plus 2^40 when neither window
-- nor state refuses it
-- Returns {ok, clock in ms, epoch, seq before the batch, clock in ms, time to pay in
-- ms, 1 when the stock has items, one letter a claim, details of those that have
-- some, in order}; {respread, …, buckets} when there are others
-- Retry: not before the deadline has passed and the journal was searched for the token.
local meta_key, holdings_key, places_key, journal_key, free_key, issued_key, state_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local seen_epoch, seen_seq, deadline_ms, token, spread, packed = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), ARGV[6]

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash', 'stream', 'list', 'hash', 'string'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
if now > deadline_ms then return {'late', now, s.epoch, s.seq} end
if s.buckets ~= spread then return {'respread', now, s.epoch, s.seq, s.buckets} end

-- Counters stand beside all lists: #list searches for the end each time.
local claims = cmsgpack.unpack(packed)
local count = #claims
local buckets, fields, opened = {}, {}, 0
for i = 1, count, 4 do
  local field = claims[i]
  if not buckets[field] then
    buckets[field] = ''
    opened = opened + 1
    fields[opened] = field
  end
end
local got = redis.call('HMGET', holdings_key, unpack(fields))
for i = 1, opened do buckets[fields[i]] = got[i] or '' end
local head = redis.call('HGET', places_key, place_field(s.epoch, s.seq + 1)) or ''
local skipped = (s.seq + 1) % CHUNK * SLOT - #head
if skipped < 0 then return {'corrupt', now, s.epoch, s.seq} end

local closed = s.closed == 1 and 'P' or (s.closed == 2 or now >= s.ends) and 'E' or now < s.starts and 'N' or nil
local seq, left, granted, limit, with_items = s.seq, s.left, s.granted, s.limit, s.items == 1
-- The first of the entries is their header, which is known at the end.
local grants, entries, written, slots = 0, {''}, 1, {}
local issued, issued_places, pool, pooled, taken = {}, {}, {}, 0, 0
local no_key, last_bytes, one, holds = rep('\0', 8), {}, count_bytes(1), {}
local at_epoch, before_last, before_last_at = pack('>I6H', now, s.epoch), '', -1

-- Takes the next free items, reading a page of them when they run short.
local function take(n)
  while pooled < taken + n do
    local page = redis.call('LRANGE', free_key, pooled, pooled + max(n, 500) - 1)
    if #page == 0 then return nil end
    for i = 1, #page do pool[pooled + i] = page[i] end
    pooled = pooled + #page
  end
  taken = taken + n
  return concat(pool, '', taken - n + 1, taken)
end

-- What was granted before, with its items.
local function first_result(bucket, record)
  local items = ''
  if with_items then
    local epoch, at = unpack_bytes('>HI4', bucket, record + EPOCH_AT)
    local place = pack('>HI4', epoch % RELEASED, at)
    items = issued[place] or redis.call('HGET', issued_key, place) or ''
  end
  return sub(bucket, record, record + RECORD - 1) .. items
end

-- The places of what the user holds, newest first.
local function held_by(bucket, first, last)
  if not first then return '' end
  local places, record = {}, last - RECORD + 1
  while record >= first and #places < 100 do
    if byte(bucket, record + EPOCH_AT) < 128 then places[#places + 1] = sub(bucket, record + EPOCH_AT, record + KEY_AT - 1) end
    record = record - RECORD
  end
  return concat(places)
end

-- Gives the next place to a claim. What stands before the key in its record
-- changes in the last byte mostly, so it is kept and not made again.
local function next_place(field, quantity)
  seq, left, granted, grants = seq + 1, left - quantity, granted + quantity, grants + 1
  slots[grants] = field
  local low = seq % 256
  if seq - low ~= before_last_at then
    before_last_at = seq - low
    before_last = at_epoch .. sub(pack('>I4', seq), 1, 3)
  end
  local last = last_bytes[low]
  if not last then
    last = char(low)
    last_bytes[low] = last
  end
  return last
end

-- The units that a user holds: added up once in a batch, since who holds many
-- claims may send many, and kept by the grants after that.
local function held_units(user, bucket, first, last)
  if not first then return 0 end
  local units = holds[user] or units_of(bucket, first, last)
  holds[user] = units
  return units
end

-- Decides one claim: its letter, and its detail when it has one. Only a grant
-- changes anything, and only in this script's memory.
local LATE = 1099511627776
local function decide(field, user, tail, quantity)
  local bucket, first, last, count_at = buckets[field], nil, nil, nil
  if find(bucket, user, 1, true) then
    first, last, count_at = user_in(bucket, user)
    if first and sub(tail, 1, 8) ~= no_key then
      local record = record_of(bucket, first, last, sub(tail, 1, 8))
      if record then
        if sub(bucket, record + QUANTITY_AT, record + RECORD - 1) ~= sub(tail, 9) then return 'K' end
        return 'R', first_result(bucket, record)
      end
    end
  end
  if quantity < 0 then return 'O' end
  if quantity > LATE then
    quantity = quantity - LATE
  elseif closed then
    return closed
  end
  if left < quantity then return 'S', text(left) end
  local held = held_units(user, bucket, first, last)
  if held + quantity > limit then return 'L', held_by(bucket, first, last) end
  if seq >= LAST_SEQ then return 'X' end
  local items
  if with_items then
    items = take(quantity)
    if not items then return nil end
  end
  local last_byte = next_place(field, quantity)
  if first then
    buckets[field] = sub(bucket, 1, count_at - 1) .. count_bytes((last + 1 - first) / RECORD + 1) ..
      sub(bucket, first, last) .. before_last .. last_byte .. tail .. sub(bucket, last + 1)
    holds[user] = held + quantity
  else
    buckets[field] = bucket .. user .. one .. before_last .. last_byte .. tail
  end
  entries[written + 1], entries[written + 2] = user, tail
  written = written + 2
  if not items then return 'G' end
  local place = pack('>HI4', s.epoch, seq)
  issued[place], issued_places[grants] = items, place
  local _, numbers = items_in(items)
  written = written + 1
  entries[written] = numbers
  return 'G', items
end

local letters = {}
local reply, told = {'ok', now, s.epoch, s.seq, now, s.pay_in, s.items, ''}, 8
local plain = not closed and not with_items and s.seq < LAST_SEQ - count
for i = 1, count, 4 do
  local field, user, quantity = claims[i], claims[i + 1], claims[i + 3]
  local bucket = buckets[field]
  if plain and quantity > 0 and quantity <= left and quantity <= limit and not find(bucket, user, 1, true) then
    -- decide would come to the same: nearly all claims of a sale are their
    -- user's first, and this is all that is done for them.
    local last_byte = next_place(field, quantity)
    buckets[field] = bucket .. user .. one .. before_last .. last_byte .. claims[i + 2]
    entries[written + 1], entries[written + 2] = user, claims[i + 2]
    written = written + 2
    letters[(i + 3) / 4] = 'G'
  else
    local letter, detail = decide(field, user, claims[i + 2], quantity)
    if not letter then return {'corrupt', now, s.epoch, s.seq} end
    letters[(i + 3) / 4] = letter
    if detail then
      told = told + 1
      reply[told] = detail
    end
  end
end
reply[8] = grants * 4 == count and rep('G', grants) or concat(letters)
if grants == 0 then return reply end

local pay_by = s.pay_in > 0 and now + s.pay_in or 0
entries[1] = pack('>BBI6I4c8I6B', 1, 2, now, grants, token, pay_by, s.items)
local added, refused = journal(journal_key, s.epoch, seq, concat(entries))
if not added then return unwritten(refused, now, s.epoch, s.seq) end

local changed, n = {}, 0
for i = 1, opened do
  local bucket = buckets[fields[i]]
  if bucket ~= (got[i] or '') then
    changed[n + 1], changed[n + 2] = fields[i], bucket
    n = n + 2
  end
end
in_portions('HSET', holdings_key, changed, 4000)
local index, i = {}, 1
head = head .. rep('\0', skipped)
while i <= grants do
  local size = min(CHUNK - (s.seq + i) % CHUNK, grants - i + 1)
  index[#index + 1] = place_field(s.epoch, s.seq + i)
  index[#index + 1] = head .. concat(slots, '', i, i + size - 1)
  head, i = '', i + size
end
in_portions('HSET', places_key, index, 4000)
if taken > 0 then
  redis.call('LTRIM', free_key, taken, -1)
  local with = {}
  for g = 1, grants do
    with[2 * g - 1], with[2 * g] = issued_places[g], issued[issued_places[g]]
  end
  in_portions('HSET', issued_key, with, 4000)
end
redis.call('HSET', meta_key, 'seq', text(seq), 'left', text(left), 'granted', text(granted), 'at', text(now))
if left == 0 then tell(state_key, s.epoch, seq, s.version) end
return reply
