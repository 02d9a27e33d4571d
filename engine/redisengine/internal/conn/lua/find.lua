-- Finds the grant at a place.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:holdings, KEYS[3] dibs:{c:s}:places,
-- KEYS[4] dibs:{c:s}:issued
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it, ARGV[3] and ARGV[4]
-- epoch and seq of the place
-- Returns {ok, clock in ms, epoch, seq, time to pay in ms, the user's name, time
-- (6 bytes) and record, items}
-- Retry: safe; it only reads.
local meta_key, holdings_key, places_key, issued_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local seen_epoch, seen_seq, epoch, seq = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash', 'hash'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
local field, bucket, user, at, time = at_place(places_key, holdings_key, epoch, seq)
if not field then return {'not_found', now, s.epoch, s.seq} end
local items = s.items == 1 and redis.call('HGET', issued_key, place(epoch, seq)) or ''
local _, _, _, _, after = record_at(bucket, at)
return {'ok', now, s.epoch, s.seq, text(s.pay_in), user, pack('>I6', time) .. sub(bucket, at, after - 1), items}
