-- Lists a user's grants, released ones too, in the order of their places.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:holdings, KEYS[3] dibs:{c:s}:places,
-- KEYS[4] dibs:{c:s}:issued
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it, ARGV[3] hash of the
-- user, ARGV[4] the user's name
-- Returns {ok, clock in ms, epoch, seq, time to pay in ms, for each grant: time
-- (6 bytes) and record, items}
-- Retry: safe; it only reads.
local meta_key, holdings_key, places_key, issued_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local seen_epoch, seen_seq, hash, user = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash', 'hash'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
local reply = {'ok', now, s.epoch, s.seq, text(s.pay_in)}
local bucket = redis.call('HGET', holdings_key, bucket_of(hash, s.buckets)) or ''
local at, last = user_in(bucket, user)
while at and at <= last do
  local epoch, seq, _, _, after = record_at(bucket, at)
  local _, time = slot_of(places_key, epoch, seq)
  if not time then return {'corrupt', now, s.epoch, s.seq} end
  reply[#reply + 1] = pack('>I6', time) .. sub(bucket, at, after - 1)
  reply[#reply + 1] = s.items == 1 and redis.call('HGET', issued_key, place(epoch, seq)) or ''
  at = after
end
return reply
