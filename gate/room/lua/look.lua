-- Tells users their numbers in a campaign's waiting room, gives a number to those
-- who want one, and moves on up to which place users are admitted.
-- KEYS[1] dibs:{c:room}:meta, KEYS[2] dibs:{c:room}:gone, KEYS[3..] dibs:{c:room}:u:B,
-- the buckets of the users
-- ARGV[1] when the campaign starts, in ms, ARGV[2] 1 while users are admitted, else
-- 0, ARGV[3] users admitted per second, ARGV[4] how many at once, ARGV[5] the most
-- numbers, ARGV[6] the seed, should this call be the first after the start, ARGV[7]
-- when the keys expire, in ms, ARGV[8..] for each user: which of KEYS is the bucket,
-- 1 when the user wants a number, the name
-- Returns {clock in ms, last number, how many came before the start or -1, up to
-- which place users are admitted, seed, the users' numbers: 0 for none, -1 when the
-- room is full, -2 for one who wants a number and may give up no more}
-- Retry: safe; who has a number keeps it.
local floor, max, min = math.floor, math.max, math.min
local meta_key, gone_key = KEYS[1], KEYS[2]
local starts, open, rate, burst = tonumber(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3]), tonumber(ARGV[4])
local most, seed, expire = tonumber(ARGV[5]), ARGV[6], ARGV[7]
local SAVE_MS, CATCH_UP_MS, PASS_AT_ONCE, FIRST_USER, MOST_GIVEN_UP = 200, 2000, 10000, 8, 2

-- Lua's own way of writing a number loses digits beyond the fourteenth.
local function text(n) return string.format('%.0f', n) end

local t = redis.call('TIME')
local now = t[1] * 1000 + floor(t[2] / 1000)
local got = redis.call('HMGET', meta_key, 'tail', 'early', 'admitted', 'as_of', 'seed', 'passed', 'left')
local tail, early = tonumber(got[1] or 0), tonumber(got[2] or -1)
local admitted, as_of, passed = tonumber(got[3] or 0), tonumber(got[4] or 0), tonumber(got[6] or 0)
-- Those who gave their number up do not take anybody's place in the room.
local left, save = tonumber(got[7] or 0), false

-- The first call after the start fixes which users came before it.
if early < 0 and now >= starts then
  early, admitted, as_of, save = tail, burst, starts, true
else
  seed = got[5] or ''
end
local elapsed = max(0, now - as_of)
if early >= 0 then
  -- Unused admissions are kept up to one burst.
  local limit = max(admitted, tail + burst)
  if open then
    -- A time in which nobody could look lets in no more than a burst, or a moment's worth.
    admitted = min(admitted + min(max(CATCH_UP_MS * rate / 1000, burst), elapsed * rate / 1000), limit)
  end
  -- A place that was given up lets the next one in when it is passed.
  if redis.call('HLEN', gone_key) == 0 then passed = floor(admitted) end
  for _ = 1, PASS_AT_ONCE do
    if passed >= floor(admitted) then break end
    passed = passed + 1
    if redis.call('HDEL', gone_key, text(passed)) == 1 then admitted, save = admitted + 1, true end
  end
  admitted = min(admitted, limit)
  passed = min(passed, floor(admitted))
  save = save or elapsed >= SAVE_MS
end

local reply = {now, 0, early, floor(admitted), seed}
for i = FIRST_USER, #ARGV, 3 do
  local bucket, name = KEYS[tonumber(ARGV[i])], ARGV[i + 2]
  -- A user has a number, if any, and a dash for each that was given up.
  local held, given_up = string.match(redis.call('HGET', bucket, name) or '', '^(%d*)(%-*)$')
  local number = tonumber(held) or 0
  if number == 0 and ARGV[i + 1] == '1' then
    if #given_up >= MOST_GIVEN_UP then
      number = -2
    elseif tail - left >= most then
      number = -1
    else
      tail, save = tail + 1, true
      number = tail
      redis.call('HSET', bucket, name, text(number) .. given_up)
      redis.call('PEXPIREAT', bucket, expire)
    end
  end
  reply[#reply + 1] = number
end
reply[2] = tail
if save then
  if early >= 0 then as_of = as_of + elapsed end
  redis.call('HSET', meta_key, 'tail', text(tail), 'early', text(early), 'admitted', string.format('%.6f', admitted), 'as_of', text(as_of),
    'seed', seed, 'passed', text(passed))
  redis.call('PEXPIREAT', meta_key, expire)
end
return reply
