-- Decides a batch of claims of one shard in one step: repeat, state, window,
-- stock, limit (before the stock where the shard says so), limit per product, the
-- most claims of a user, grant, in this order for each.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:holdings, KEYS[3] dibs:{c:s}:places,
-- KEYS[4] dibs:{c:s}:journal, KEYS[5] dibs:{c:s}:free, KEYS[6] dibs:{c:s}:issued,
-- KEYS[7] dibs:state:{c:s}; of a campaign that shares a limit per product also KEYS[8]
-- dibs:{product/p:s}:counted, KEYS[9] dibs:{product/p:s}:units
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it, ARGV[3] deadline in
-- ms of Redis' clock, ARGV[4] the batch's token (8 bytes), ARGV[5] the buckets that
-- users are spread over, then of each claim, as msgpack arrays: ARGV[6] its bucket's
-- field, ARGV[7] how its user and record begin: name, a one, key (8 bytes), ARGV[8]
-- its quantity, or nothing when all are 1: negative when only a repeat is asked for,
-- plus 2^40 when neither window nor state refuses it, plus 2^41 when only a user is
-- asked for who has a claim; ARGV[9] for each claim that shares its bucket with an
-- earlier one, its number and that of the first of them, or nothing when none does,
-- ARGV[10] of each claim that has a reference: its number (2 bytes), the reference's
-- length (2), the reference; nothing when none has one; ARGV[11] the number of shards
-- by which the claims came here
-- Returns {ok, clock in ms, epoch, seq before the batch, clock in ms, time to pay in
-- ms, 1 when the stock has items, one letter a claim, details of those that have
-- some, in order}; {respread, …, buckets, shards} when there are others
-- Retry: not before the deadline has passed and the journal was searched for the token.
local meta_key, holdings_key, places_key, journal_key, free_key, issued_key, state_key, counted_key, units_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local seen_epoch, seen_seq, deadline_ms, token, spread = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local fields, begins, quantities, sharing, references, shards = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10], tonumber(ARGV[11])

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash', 'stream', 'list', 'hash', 'string'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
if now > deadline_ms then return {'late', now, s.epoch, s.seq} end
if s.buckets ~= spread or s.shards ~= shards then return {'respread', now, s.epoch, s.seq, s.buckets, s.shards} end
local product
if counted_key then
  if not typed({counted_key, units_key}, {'hash', 'hash'}) then return {'wrong_type', now, 0, 0} end
  product = product_of(meta_key, counted_key, s.epoch)
  if not product then return {'not_open', now, 0, 0} end
end

-- Counters stand beside all lists: #list searches for the end each time.
fields, begins = cmsgpack.unpack(fields), cmsgpack.unpack(begins)
quantities = quantities ~= '' and cmsgpack.unpack(quantities) or nil
local count = #fields
-- Nearly every claim has a bucket of its own. Of the others, homes says whose
-- bucket it is, and slots where the new value of it stands in written, 0 while
-- there is none. A bucket is read once: one user may send all claims, and have a
-- large one. No field is empty.
local homes, slots = {}, {}
local pairs_of = sharing ~= '' and cmsgpack.unpack(sharing) or {}
for i = 1, #pairs_of, 2 do
  homes[pairs_of[i]], slots[pairs_of[i + 1]], fields[pairs_of[i]] = pairs_of[i + 1], 0, ''
end
local got = redis.call('HMGET', holdings_key, unpack(fields))
for i, home in pairs(homes) do fields[i] = fields[home] end
-- The units of the product that each user holds, by name, and the users who were granted some.
local holdings_of, granted_to = {}, {}
if product then
  local names = {}
  for i = 1, count do names[i] = sub(begins[i], 1, -10) end
  for i, run in ipairs(redis.call('HMGET', units_key, unpack(names))) do holdings_of[names[i]] = run or '' end
end
local head = redis.call('HGET', places_key, place_field(s.epoch, s.seq + 1)) or ''

local closed = s.closed == 1 and 'P' or (s.closed == 2 or now >= s.ends) and 'E' or now < s.starts and 'N' or nil
local seq, left, limit, with_items = s.seq, s.left, s.limit, s.items == 1
-- Buckets' fields and their new values in turn, as HSET takes them.
local written, last_slot = {}, 0
-- The grants, for the journal. While none is refused, they are the claims.
local grants, all, of_fields, of_begins, of_quantities, numbers = 0, true, fields, begins, {}, {}
local issued, pool, pooled, taken = {}, {}, 0, 0
local no_key = rep('\0', 8)
-- Of each user that decide had to add up: the units held, the claims made, and
-- the places that a refusal lists. One user may send a batch of claims, and have
-- many records.
local holds, makes, lists = {}, {}, {}

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

-- A grant from before: its time, its record and its items.
local function first_result(bucket, at)
  local epoch, was, _, _, after = record_at(bucket, at)
  local _, time = nil, now
  if epoch ~= s.epoch or was <= s.seq then _, time = slot_of(places_key, epoch, was) end
  if not time then return nil end
  local items = ''
  if with_items then items = issued[place(epoch, was)] or redis.call('HGET', issued_key, place(epoch, was)) or '' end
  return pack('>I6', time) .. sub(bucket, at, after - 1) .. items
end

-- The places of what the user holds, newest first, and most of them.
local function held_by(bucket, first, last)
  local places, n, at = {}, 0, first
  while at and at <= last do
    local epoch, was, _, released, after = record_at(bucket, at)
    if not released then
      n = n + 1
      places[n] = place(epoch, was)
    end
    at = after
  end
  local newest = {}
  for i = n, max(n - 99, 1), -1 do newest[n - i + 1] = places[i] end
  return concat(newest)
end

-- Notes the new value of a claim's bucket.
local function write(i, bucket)
  local home = homes[i] or i
  local slot = slots[home] or 0
  if slot == 0 then
    slot, last_slot = last_slot + 2, last_slot + 2
    written[slot - 1] = fields[i]
    if slots[home] then slots[home] = slot end
  end
  written[slot] = bucket
end

-- From the first claim on that is not granted, those that are have lists of
-- their own, and each claim a letter.
local letters = {}
local function part()
  if not all then return end
  all, of_fields, of_begins = false, {}, {}
  for i = 1, grants do of_fields[i], of_begins[i], letters[i] = fields[i], begins[i], 'G' end
end

-- Writes strings as the msgpack array that they came in.
local function array_of(strings, n)
  local written = {'\220' .. pack('>H', n)}
  for i = 1, n do
    local size = #strings[i]
    written[i + 1] = (size < 32 and char(160 + size) or '\218' .. pack('>H', size)) .. strings[i]
  end
  return concat(written)
end

-- The references of what was granted, each with the number that its claim has among
-- the grants; nil when there are none.
local function granted_references()
  if references == '' then return nil end
  if all then return references end
  local nth, n, kept, at = {}, 0, {}, 1
  for i = 1, count do
    if letters[i] == 'G' then
      n = n + 1
      nth[i] = n
    end
  end
  while at <= #references do
    local i, size = unpack_bytes('>HH', references, at)
    local after = at + 4 + size
    if nth[i] then kept[#kept + 1] = pack('>H', nth[i]) .. sub(references, at + 2, after - 1) end
    at = after
  end
  return #kept > 0 and concat(kept) or nil
end

-- Decides one claim: its letter, and its detail when it has one. Only a grant
-- changes anything, and only in this script's memory.
local LATE, KNOWN = 1099511627776, 2199023255552
-- dibs.MaxClaimsPerUser.
local MOST_CLAIMS = 1000
local function decide(i, bucket, quantity)
  local user, key = sub(begins[i], 1, -10), sub(begins[i], -8)
  local first, last, count_at = user_in(bucket, user)
  if math.abs(quantity) >= KNOWN then
    if not first then return 'A' end
    quantity = quantity < 0 and quantity + KNOWN or quantity - KNOWN
  end
  local at = first and key ~= no_key and record_of(bucket, first, last, key)
  if at then
    local _, _, before = record_at(bucket, at)
    if before ~= math.abs(quantity) % LATE then return 'K' end
    local detail = first_result(bucket, at)
    return detail and 'R', detail
  end
  if quantity < 0 then return 'O' end
  if quantity > LATE then
    quantity = quantity - LATE
  elseif closed then
    return closed
  end
  if left < quantity and s.limit_first == 0 then return 'S', text(left) end
  local held, made = holds[user], makes[user]
  if not held then
    held, made = 0, 0
    if first then held, made = units_of(bucket, first, last) end
    holds[user], makes[user] = held, made
  end
  if held + quantity > limit then
    lists[user] = lists[user] or held_by(bucket, first, last)
    return 'L', lists[user]
  end
  if left < quantity then return 'S', text(left) end
  if product then
    if product.uncounted then return 'U' end
    if product.held(holdings_of[user]) + quantity > product.limit then
      lists[user] = lists[user] or held_by(bucket, first, last)
      return 'Q', lists[user]
    end
  end
  if made >= MOST_CLAIMS then return 'M' end
  if seq >= LAST_SEQ then return 'X' end
  local items
  if with_items then
    items = take(quantity)
    if not items then return nil end
  end
  seq, left, grants = seq + 1, left - quantity, grants + 1
  if not all then of_fields[grants], of_begins[grants] = fields[i], begins[i] end
  local record = key .. behind_key(s.epoch, seq, quantity)
  if first then
    local had = (last + 1 - first + #record) / RECORD
    bucket = sub(bucket, 1, count_at - 1) .. count_bytes(had) .. sub(bucket, first, last) .. record .. sub(bucket, last + 1)
  else
    bucket = bucket .. user .. count_bytes(#record / RECORD) .. record
  end
  write(i, bucket)
  holds[user], makes[user], lists[user] = held + quantity, made + 1, nil
  if product then holdings_of[user], granted_to[user] = product.add(holdings_of[user], quantity), true end
  if quantities then of_quantities[grants] = pack('>I4', quantity) end
  if not items then return 'G' end
  issued[place(s.epoch, seq)] = items
  local _, of_items = items_in(items)
  numbers[grants] = of_items
  return 'G', items
end

local reply, told = {'ok', now, s.epoch, s.seq, now, s.pay_in, s.items, ''}, 8
local plain = not product and not closed and not with_items and not quantities and limit > 0 and s.seq < LAST_SEQ - count
-- The part behind the key in the record of a place changes mostly in the last byte,
-- so the rest is kept and not made again.
local before_last, before_last_at, last_bytes = '', -1, {}
for i = 1, count do
  local begin, home = begins[i], homes[i] or i
  local bucket, slot = got[home], slots[home] or 0
  if slot > 0 then bucket = written[slot] end
  if plain and left > 0 and not (bucket and find(bucket, sub(begin, 1, -10), 1, true)) then
    -- decide would come to the same: nearly all claims of a sale are their
    -- user's first, and this is all that is done for them.
    seq, left, grants = seq + 1, left - 1, grants + 1
    local low = seq % 256
    if seq - low ~= before_last_at then
      before_last_at = seq - low
      before_last = sub(behind_key(s.epoch, seq, 1), 1, 5)
    end
    local last_byte = last_bytes[low]
    if not last_byte then
      last_byte = char(low)
      last_bytes[low] = last_byte
    end
    if slot == 0 then
      slot, last_slot = last_slot + 2, last_slot + 2
      written[slot - 1] = fields[i]
      if slots[home] then slots[home] = slot end
    end
    if bucket then
      written[slot] = bucket .. begin .. before_last .. last_byte
    else
      written[slot] = begin .. before_last .. last_byte
    end
    if not all then of_fields[grants], of_begins[grants], letters[i] = fields[i], begin, 'G' end
  else
    local letter, detail = decide(i, bucket or '', quantities and quantities[i] or 1)
    if not letter then return {'corrupt', now, s.epoch, s.seq} end
    if letter ~= 'G' then part() end
    if not all then letters[i] = letter end
    if detail then
      told = told + 1
      reply[told] = detail
    end
  end
end
reply[8] = all and rep('G', grants) or concat(letters)
if grants == 0 then return reply end

local pay_by = s.pay_in > 0 and now + s.pay_in or 0
local payload = pack('>BBI6I4c8I6BB', FORMAT, 2, now, grants, token, pay_by, s.items, quantities and 1 or 0) ..
  concat(of_quantities) .. concat(numbers)
local added, unadded = journal(journal_key, s.epoch, seq, payload, all and ARGV[7] or array_of(of_begins, grants), granted_references())
if not added then return unwritten(unadded, now, s.epoch, s.seq) end

in_portions('HSET', holdings_key, written, 4000)
local index, i = {}, 1
while i <= grants do
  local offset = (s.seq + i) % CHUNK
  local size = min(CHUNK - offset, grants - i + 1)
  index[#index + 1] = place_field(s.epoch, s.seq + i)
  index[#index + 1] = head .. pack('>I6BB', now, offset, size) .. concat(of_fields, '', i, i + size - 1)
  head, i = '', i + size
end
in_portions('HSET', places_key, index, 4000)
if product then
  local units = {}
  for user in pairs(granted_to) do
    units[#units + 1] = user
    units[#units + 1] = holdings_of[user]
  end
  in_portions('HSET', units_key, units, 4000)
end
if taken > 0 then
  redis.call('LTRIM', free_key, taken, -1)
  local with = {}
  for at, items in pairs(issued) do
    with[#with + 1] = at
    with[#with + 1] = items
  end
  in_portions('HSET', issued_key, with, 4000)
end
redis.call('HSET', meta_key, 'seq', text(seq), 'left', text(left), 'granted', text(s.granted + s.left - left), 'at', text(now))
if left == 0 then tell(state_key, s.epoch, seq, s.version) end
return reply
