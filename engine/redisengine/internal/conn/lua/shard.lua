-- The code that the scripts of a shard share; it stands before each of them.
-- KEYS: none of its own, the functions are given those that a script names.
-- ARGV: none of its own.
-- Returns nothing; a script's refusal is {word, Redis' clock in ms, epoch, seq}.
-- Retry: the functions only read.
local floor, max, min = math.floor, math.max, math.min
local find, sub, byte, char, rep = string.find, string.sub, string.byte, string.char, string.rep
local pack, unpack_bytes, concat = struct.pack, struct.unpack, table.concat

-- A whole number that a double holds exactly lies below this.
local WHOLE = 9007199254740992
local LAST_SEQ = 4294967295
-- How a shard is written here: SHARING where the campaign shares a limit per product,
-- which earlier versions do not know and must not decide on. A later one is read by
-- later versions only.
local FORMAT, SHARING = 2, 3
-- A record is key (8 bytes), mark (2) and seq (4). The mark is 1 bit that says
-- released, 3 of the quantity and 12 of the epoch. Where the quantity does not fit
-- in, its bits are SPELT, and a second record, of zeros, has it in place of a seq.
local MARK_AT, SEQ_AT, RECORD, SPELT, RELEASED, EPOCHS = 8, 10, 14, 7, 32768, 4096
-- How many places one field of the index has, and the bytes of each.
local CHUNK, SLOT = 120, 4
-- A load that is not complete within a day is forgotten. A loader may die, and its shard
-- may be missing from the list of shards: then nobody looks for what it has left.
local LOAD_MS = 86400000

-- A wrong type must show before the first write, not after it.
local function typed(keys, types)
  for i = 1, #types do
    local is = redis.call('TYPE', keys[i]).ok
    if is ~= types[i] and is ~= 'none' then return false end
  end
  return true
end

local function clock_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + floor(t[2] / 1000)
end

-- Lua's own way of writing a number loses digits beyond the fourteenth.
local function text(n) return string.format('%.0f', n) end

-- Every text that is not a whole number within bounds yields nil.
local function whole(s)
  local n = tonumber(s)
  if n and n == floor(n) and n > -WHOLE and n < WHOLE then return n end
  return nil
end

local NUMBERS = {'epoch', 'seq', 'left', 'granted', 'at', 'starts', 'ends', 'closed', 'limit', 'pay_in', 'buckets', 'items', 'values', 'version', 'limit_first'}

-- Names this run of the server as the master that it is. After a restart, and on a
-- replica that was promoted, it is another one, and there may be less history than
-- before. A server that was demoted, and promoted again, runs on under its id: what
-- tells is the history that it followed last, which is zeros where it followed none.
local function run_id()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
  local followed = string.match(redis.call('INFO', 'replication'), 'master_replid2:(%w*[1-9a-f]%w*)')
  return followed and run .. ':' .. followed or run
end

-- Reads an open shard, or says why not. A shard is open on the run of the server
-- where it was opened: on any other one it has to be compared with the ledger
-- first. A node that has seen more of it than there is now would else be
-- answered from a history that was lost.
local function shard(meta_key, seen_epoch, seen_seq, now)
  local got = redis.call('HMGET', meta_key, 'state', 'server', 'format', 'shards', unpack(NUMBERS))
  if not got[1] then return nil, {'absent', now, 0, 0} end
  local format = whole(got[3] or '1')
  if not format then return nil, {'corrupt', now, 0, 0} end
  if format > SHARING then return nil, {'newer', now, 0, 0, text(format)} end
  if got[1] ~= 'open' or got[2] ~= run_id() or format < FORMAT then return nil, {'not_open', now, 0, 0} end
  -- Versions before did not write how many shards there are.
  local s = {shards = whole(got[4] or '0')}
  if not s.shards then return nil, {'corrupt', now, 0, 0} end
  for i, name in ipairs(NUMBERS) do
    s[name] = whole(got[i + 4])
    if not s[name] then return nil, {'corrupt', now, 0, 0} end
  end
  seen_epoch, seen_seq = tonumber(seen_epoch), tonumber(seen_seq)
  if s.epoch < seen_epoch or s.epoch == seen_epoch and s.seq < seen_seq then
    return nil, {'behind', now, s.epoch, s.seq}
  end
  return s
end

-- A name is a byte and the rest: the byte is the text's length, or says that a
-- number or a UUID follows in binary. Returns the size of both.
local function name_size(first)
  if first <= 128 then return first + 1 end
  return first < 137 and first - 127 or 17
end

-- A bucket is a run of users: name, count of records, records. The count is one
-- byte, and where that does not do, a zero and four bytes.
local function count_bytes(n)
  if n < 256 then return char(n) end
  return '\0' .. pack('>I4', n)
end

-- Reads what a bucket has of the user at a place of it: where the count of the
-- user's records stands, and where they begin and end.
local function run_at(bucket, at)
  local count_at = at + name_size(byte(bucket, at))
  local count, first = byte(bucket, count_at), count_at + 1
  if count == 0 then count, first = unpack_bytes('>I4', bucket, first) end
  return count_at, first, first + count * RECORD - 1
end

-- Returns where the user's records begin and end, and where their count stands.
-- Few buckets hold the bytes of a name by chance; the walk tells them apart.
local function user_in(bucket, user)
  local at = 1
  while at <= #bucket do
    local count_at, first, last = run_at(bucket, at)
    if sub(bucket, at, count_at - 1) == user then return first, last, count_at end
    at = last + 1
  end
  return nil
end

-- The mark and the seq of a record, and the second one of a large quantity.
local function behind_key(epoch, seq, quantity)
  if quantity < SPELT then return pack('>HI4', epoch + quantity * EPOCHS, seq) end
  return pack('>HI4', epoch + SPELT * EPOCHS, seq) .. rep('\0', SEQ_AT) .. pack('>I4', quantity)
end

-- Reads the record that begins at a place of a bucket: epoch, seq, quantity,
-- whether it is released, and where the next one begins.
local function record_at(bucket, at)
  local mark, seq = unpack_bytes('>HI4', bucket, at + MARK_AT)
  local released = mark >= RELEASED
  if released then mark = mark - RELEASED end
  local quantity, after = floor(mark / EPOCHS), at + RECORD
  if quantity == SPELT then quantity, after = unpack_bytes('>I4', bucket, after + SEQ_AT) end
  return mark % EPOCHS, seq, quantity, released, after
end

-- Adds up a user's records: the units of those that are not released, and how
-- many claims they are.
local function units_of(bucket, first, last)
  local units, claims, at = 0, 0, first
  while at <= last do
    local _, _, quantity, released, after = record_at(bucket, at)
    if not released then units = units + quantity end
    claims, at = claims + 1, after
  end
  return units, claims
end

-- Returns where the record of a key begins among a user's records.
local function record_of(bucket, first, last, key)
  local at = find(bucket, key, first, true)
  while at and at <= last do
    if (at - first) % RECORD == 0 then return at end
    at = find(bucket, key, at + 1, true)
  end
  return nil
end

local function place(epoch, seq) return pack('>HI4', epoch, seq) end

local function place_field(epoch, seq) return place(epoch, floor(seq / CHUNK)) end

-- A bucket's field is its number, from 1, in four bytes: a text would cost as
-- much to make as all else that is done for a claim.
local function bucket_of(hash, buckets) return pack('>I4', hash % buckets + 1) end

-- The index from a place to its bucket, and when it was given, has a field for
-- CHUNK places: runs of time (6 bytes), the first one's offset, their count, and
-- as many buckets. Returns the bucket's field and the time of a place; nothing
-- when it has none.
local function slot_of(places_key, epoch, seq)
  local runs, at = redis.call('HGET', places_key, place_field(epoch, seq)) or '', 1
  while at <= #runs do
    local time, offset, count, first = unpack_bytes('>I6BB', runs, at)
    local nth = seq % CHUNK - offset
    if nth >= 0 and nth < count then return sub(runs, first + nth * SLOT, first + nth * SLOT + SLOT - 1), time end
    at = first + count * SLOT
  end
  return nil
end

-- Finds the record at a place: the bucket's field and bytes, the user's name,
-- where the record begins, and its time.
local function at_place(places_key, holdings_key, epoch, seq)
  local field, time = slot_of(places_key, epoch, seq)
  if not field then return nil end
  local bucket, user_at = redis.call('HGET', holdings_key, field) or '', 1
  while user_at <= #bucket do
    local count_at, at, last = run_at(bucket, user_at)
    while at <= last do
      local e, q, _, _, after = record_at(bucket, at)
      if q == seq and e == epoch then return field, bucket, sub(bucket, user_at, count_at - 1), at, time end
      at = after
    end
    user_at = last + 1
  end
  return nil
end

-- Lets the writes that follow happen while Redis is full. Redis refuses a script's
-- first write there when that may take memory, and lets all of them pass after a
-- first one that cannot, so that scripts are not cut in two: so does 6.2, and every
-- later one for scripts without flags. For what leads out of a full Redis alone.
local function even_when_full(hash_key) redis.call('HDEL', hash_key, '') end

-- Calls a command with many values, in portions: unpack fails near 8,000.
local function in_portions(command, key, values, size)
  for i = 1, #values, size do
    redis.call(command, key, unpack(values, i, min(i + size - 1, #values)))
  end
end

-- Items stand in the free list and with their claim as number (4 bytes), length
-- (2), value. Returns the elements of such a run, and their numbers.
local function items_in(run)
  local elements, numbers, at = {}, {}, 1
  while at <= #run do
    local size = unpack_bytes('>H', run, at + 4)
    elements[#elements + 1] = sub(run, at, at + 5 + size)
    numbers[#numbers + 1] = sub(run, at, at + 3)
    at = at + 6 + size
  end
  return elements, concat(numbers)
end

-- Tells every process that follows the shard that what it refuses may have
-- changed: the stock has run out or come back, or state or window are others.
-- Its value is a new one each time, for people.
local function tell(state_key, epoch, seq, version)
  redis.call('SET', state_key, text(epoch) .. '.' .. text(seq) .. ' v' .. text(version))
end

-- Adds the entry of a place to the journal. Redis refuses an id that is not
-- above all before it, so this goes first: then nothing was written. A batch of
-- grants has its claims beside the payload, as they came, and the references of those
-- that have one.
local function journal(key, epoch, seq, payload, claims, references)
  local at = text(epoch) .. '-' .. text(seq)
  local id
  if references then
    id = redis.pcall('XADD', key, at, 'p', payload, 'c', claims, 'r', references)
  else
    id = claims and redis.pcall('XADD', key, at, 'p', payload, 'c', claims) or not claims and redis.pcall('XADD', key, at, 'p', payload)
  end
  return type(id) ~= 'table' or id.err == nil, id
end

-- The answer when the journal took no entry. An id that is not above all before
-- it means damage; all else is Redis' own refusal, such as OOM, and passes.
local function unwritten(refused, now, epoch, seq)
  if find(refused.err, 'equal or smaller', 1, true) then return {'regressed', now, epoch, seq, refused.err} end
  return refused
end

-- A user's holdings of a product stand by the name, as runs of campaign (4 bytes),
-- epoch (2) and units (4). The hash of the counted campaigns has for each the epoch
-- whose units count: negative once it was retired, 0 while it was not opened, which no
-- run has. Returns that, with the number of a campaign that is not counted, and what
-- adds a run up and adds to it; nil where the shard's own campaign is not counted, and
-- the shard has to be loaded again.
local function product_of(meta_key, counted_key, epoch)
  local got = redis.call('HMGET', meta_key, 'campaign', 'of_product')
  local p = {campaign = whole(got[1] or ''), limit = whole(got[2] or ''), epochs = {}}
  local counted = redis.call('HGETALL', counted_key)
  for i = 1, #counted, 2 do
    local campaign, at = whole(counted[i]), whole(counted[i + 1])
    if campaign and at then
      p.epochs[campaign] = max(at, -at)
      if at == 0 then p.uncounted = campaign end
    end
  end
  if not p.limit or not p.campaign or p.epochs[p.campaign] ~= epoch then return nil end
  p.held = function(run)
    local units = 0
    for at = 1, #run, 10 do
      local campaign, counts, held = unpack_bytes('>I4HI4', run, at)
      if p.epochs[campaign] == counts then units = units + held end
    end
    return units
  end
  p.add = function(run, units)
    for at = 1, #run, 10 do
      local campaign, counts, held = unpack_bytes('>I4HI4', run, at)
      if campaign == p.campaign and counts == epoch then
        units = held + units
        return sub(run, 1, at - 1) .. (units > 0 and pack('>I4HI4', campaign, epoch, units) or '') .. sub(run, at + 10)
      end
    end
    return units > 0 and run .. pack('>I4HI4', p.campaign, epoch, units) or run
  end
  return p
end

-- Refuses a loader whose load another one has taken over, or of which this run
-- of the server may hold a part only; nil when it may go on.
local function not_loading(meta_key, token, now)
  local got = redis.call('HMGET', meta_key, 'state', 'token', 'server')
  if got[2] and got[2] ~= token then return {'stale', now, 0, 0} end
  if got[1] ~= 'loading' or got[3] ~= run_id() then return {'superseded', now, 0, 0} end
  return nil
end
