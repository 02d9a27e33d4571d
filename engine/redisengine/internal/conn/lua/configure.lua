-- Makes a shard's state, window, limit and number of shards those of a campaign's
-- version, unless it has a later one.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:state:{c:s}
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it, ARGV[3] version,
-- ARGV[4] 0 open, 1 paused, 2 ended, ARGV[5] start in ms, ARGV[6] end in ms,
-- ARGV[7] units that one user may hold, ARGV[8] and of the product, 0 for no such limit,
-- ARGV[9] shards of the campaign
-- Returns {ok, clock in ms, epoch, seq} or {undivided, …} when the shard goes by more shards
-- Retry: safe; it sets the same again.
local meta_key, state_key, seen_epoch, seen_seq = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local version, closed, starts, ends, limit, of_product, shards = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]

local now = clock_ms()
if not typed(KEYS, {'hash', 'string'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
if not (whole(version) and whole(closed) and whole(starts) and whole(ends) and whole(limit) and whole(of_product) and whole(shards)) then
  return {'range', now, s.epoch, s.seq}
end
if tonumber(version) >= s.version then
  -- A number of shards never falls. A node that says a lower one has a ledger that went
  -- back in time: by it, shards would decide for users whose holdings they do not know.
  if s.shards > tonumber(shards) then return {'undivided', now, s.epoch, s.seq} end
  -- A campaign can be ended, which gives its memory back, when there is none left.
  even_when_full(meta_key)
  redis.call('HSET', meta_key, 'version', version, 'closed', closed, 'starts', starts, 'ends', ends, 'limit', limit, 'shards', shards)
  if of_product ~= '0' then redis.call('HSET', meta_key, 'of_product', of_product) end
  tell(state_key, s.epoch, s.seq, tonumber(version))
end
return {'ok', now, s.epoch, s.seq}
