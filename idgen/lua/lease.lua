-- Leases a worker's number, or renews its lease.
-- KEYS[1] the workers: by number, owner and the millisecond that its lease promises, and when it ends on this server's clock
-- ARGV[1] the owner, ARGV[2] its worker or -1, ARGV[3] lifetime in ms, ARGV[4] the owner's time in ms, ARGV[5] how many workers there are
-- Returns the worker, from which and up to which millisecond ids may be made; or -1.
-- Retry: safe, the owner keeps its worker.
local all, owner, worker = KEYS[1], ARGV[1], tonumber(ARGV[2])
local life, asked, count = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function read(n)
  local text = redis.call('HGET', all, n)
  if not text then return nil, 0, 0 end
  local who, promised, ends = string.match(text, '^(%S+) (%d+) (%d+)$')
  return who, tonumber(promised), tonumber(ends)
end
local function grant(n, from, promised)
  local upto = math.max(promised, math.max(asked, from) + life)
  redis.call('HSET', all, n, string.format('%s %.0f %.0f', owner, upto, now + life))
  return {n, from, upto}
end
if worker >= 0 then
  local who, promised = read(worker)
  if who and who ~= owner then return {-1, 0, 0} end
  -- Where this server has lost it, the owner takes its worker back, behind all that another
  -- one may have been promised of it.
  if not who then asked = asked + life end
  return grant(worker, asked, promised)
end
for n = 0, count - 1 do
  local who, promised, ends = read(n)
  if who == owner then return grant(n, promised, promised) end
  if not who or ends <= now then
    return grant(n, math.max(promised, asked), promised)
  end
end
return {-1, 0, 0}
