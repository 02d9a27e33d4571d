-- What the scripts of a shard share; it stands before each of them.
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
-- The first bit of a record's epoch marks it released.
local RELEASED = 32768
-- A record is time (6 bytes), epoch (2), seq (4), key (8) and quantity (4).
local RECORD, EPOCH_AT, KEY_AT, QUANTITY_AT = 24, 6, 12, 20
-- How many places one field of the index has, and the bytes of each.
local CHUNK, SLOT = 64, 4

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

local NUMBERS = {'epoch', 'seq', 'left', 'granted', 'at', 'starts', 'ends', 'closed', 'limit', 'pay_in', 'buckets', 'items', 'values', 'version'}

-- Names this run of the server. After a restart, and on a replica that was
-- promoted, it is another one, and there may be less history than before.
local function run_id() return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or '' end

-- Reads an open shard, or says why not. A shard is open on the run of the server
-- where it was opened: on any other one it has to be compared with the ledger
-- first. A node that has seen more of it than there is now would else be
-- answered from a history that was lost.
local function shard(meta_key, seen_epoch, seen_seq, now)
  local got = redis.call('HMGET', meta_key, 'state', 'server', unpack(NUMBERS))
  if not got[1] then return nil, {'absent', now, 0, 0} end
  if got[1] ~= 'open' or got[2] ~= run_id() then return nil, {'not_open', now, 0, 0} end
  local s = {}
  for i, name in ipairs(NUMBERS) do
    s[name] = whole(got[i + 2])
    if not s[name] then return nil, {'corrupt', now, 0, 0} end
  end
  seen_epoch, seen_seq = tonumber(seen_epoch), tonumber(seen_seq)
  if s.epoch < seen_epoch or s.epoch == seen_epoch and s.seq < seen_seq then
    return nil, {'behind', now, s.epoch, s.seq}
  end
  return s
end

-- A bucket is a run of users: name's length and name, count of records, records.
-- The count is one byte, and where that does not do, a zero and four bytes.
local function count_bytes(n)
  if n < 256 then return char(n) end
  return '\0' .. pack('>I4', n)
end

-- Reads what a bucket has of the user at a place of it: his name, and where his
-- records begin and end.
local function run_at(bucket, at)
  local name, count, first = unpack_bytes('>Bc0B', bucket, at)
  if count == 0 then count, first = unpack_bytes('>I4', bucket, first) end
  return name, first, first + count * RECORD - 1
end

-- Returns where the user's records begin and end, and where their count stands.
-- Few buckets hold the bytes of a name by chance; the walk tells them apart.
local function user_in(bucket, user)
  local at, name = 1, sub(user, 2)
  while at <= #bucket do
    local is, first, last = run_at(bucket, at)
    if is == name then return first, last, at + #user end
    at = last + 1
  end
  return nil
end

-- Adds up what a user holds: the units of his records that are not released.
local function units_of(bucket, first, last)
  local units = 0
  for record = first, last, RECORD do
    if byte(bucket, record + EPOCH_AT) < 128 then units = units + unpack_bytes('>I4', bucket, record + QUANTITY_AT) end
  end
  return units
end

-- Returns where the record of a key begins among a user's records.
local function record_of(bucket, first, last, key)
  local at = find(bucket, key, first, true)
  while at and at <= last do
    if (at - first) % RECORD == KEY_AT then return at - KEY_AT end
    at = find(bucket, key, at + 1, true)
  end
  return nil
end

local function place_field(epoch, seq) return text(epoch) .. ':' .. text(floor(seq / CHUNK)) end

-- A bucket's field is its number, from 1, in four bytes: a text would cost as
-- much to make as all else that is done for a claim.
local function bucket_of(hash, buckets) return pack('>I4', hash % buckets + 1) end

-- Finds the record at a place: the bucket's field and bytes, the user, where the
-- record begins, and whether it is released.
local function at_place(places_key, holdings_key, epoch, seq)
  local chunk = redis.call('HGET', places_key, place_field(epoch, seq)) or ''
  local slot = seq % CHUNK * SLOT
  if #chunk < slot + SLOT then return nil end
  local field = sub(chunk, slot + 1, slot + SLOT)
  local bucket, at = redis.call('HGET', holdings_key, field) or '', 1
  while at <= #bucket do
    local name, first, last = run_at(bucket, at)
    for record = first, last, RECORD do
      local e, q = unpack_bytes('>HI4', bucket, record + EPOCH_AT)
      if q == seq and e % RELEASED == epoch then return field, bucket, name, record, e >= RELEASED end
    end
    at = last + 1
  end
  return nil
end

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
-- above all before it, so this goes first: then nothing was written.
local function journal(key, epoch, seq, payload)
  local id = redis.pcall('XADD', key, text(epoch) .. '-' .. text(seq), 'p', payload)
  return type(id) ~= 'table' or id.err == nil, id
end

-- The answer when the journal took no entry. An id that is not above all before
-- it means damage; all else is Redis' own refusal, such as OOM, and passes.
local function unwritten(refused, now, epoch, seq)
  if find(refused.err, 'equal or smaller', 1, true) then return {'regressed', now, epoch, seq, refused.err} end
  return refused
end

-- Refuses a loader whose load another one has taken over, or of which this run
-- of the server may hold a part only; nil when it may go on.
local function not_loading(meta_key, token, now)
  local got = redis.call('HMGET', meta_key, 'state', 'token', 'server')
  if got[2] and got[2] ~= token then return {'stale', now, 0, 0} end
  if got[1] ~= 'loading' or got[3] ~= run_id() then return {'superseded', now, 0, 0} end
  return nil
end
