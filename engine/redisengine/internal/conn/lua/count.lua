-- Counts what users hold on a shard that is being loaded, for the limit per product.
-- Their holdings in the epoch that was open before count until open.lua.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{product/p:s}:counted, KEYS[3]
-- dibs:{product/p:s}:units
-- ARGV[1] the loader's token, ARGV[2] the campaign, ARGV[3] the epoch that is loaded,
-- ARGV[4] the portion, a msgpack array of users' names and their units
-- Returns {ok, clock in ms, 0, 0} or {stale | superseded, …} as load.lua
-- Retry: safe; it takes the place of what it has written.
local meta_key, counted_key, units_key = KEYS[1], KEYS[2], KEYS[3]
local token, campaign, epoch, portion = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash'}) then return {'wrong_type', now, 0, 0} end
local refused = not_loading(meta_key, token, now)
if refused then return refused end
local open = whole(redis.call('HGET', counted_key, campaign) or '0') or 0
local names, units = {}, {}
for i = 1, #portion, 2 do names[#names + 1] = portion[i] end
for i, run in ipairs(redis.call('HMGET', units_key, unpack(names))) do
  local kept, run = {}, run or ''
  for at = 1, #run, 10 do
    local of, counts = unpack_bytes('>I4H', run, at)
    if of ~= campaign or counts == max(open, -open) and counts ~= epoch then kept[#kept + 1] = sub(run, at, at + 9) end
  end
  kept[#kept + 1] = pack('>I4HI4', campaign, epoch, tonumber(portion[2 * i]))
  units[2 * i - 1], units[2 * i] = names[i], concat(kept)
end
if redis.call('HGET', meta_key, 'replaces') == '1' then even_when_full(meta_key) end
in_portions('HSET', units_key, units, 4000)
return {'ok', now, 0, 0}
