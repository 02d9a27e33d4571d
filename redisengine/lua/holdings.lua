-- Lists a user's grants, released ones too, in the order of their places.
-- KEYS[1] dibs:{c:s}:meta, KEYS[2] dibs:{c:s}:holdings, KEYS[3] dibs:{c:s}:issued
-- ARGV[1] highest epoch seen, ARGV[2] highest seq seen in it, ARGV[3] hash of the
-- user, ARGV[4] the name's length and the name
-- Returns {ok, clock in ms, epoch, seq, time to pay in ms, records, items of each
-- record when the stock has items}
-- Retry: safe; it only reads.
local meta_key, holdings_key, issued_key = KEYS[1], KEYS[2], KEYS[3]
local seen_epoch, seen_seq, hash, user = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local now = clock_ms()
if not typed(KEYS, {'hash', 'hash', 'hash'}) then return {'wrong_type', now, 0, 0} end
local s, refusal = shard(meta_key, seen_epoch, seen_seq, now)
if not s then return refusal end
local reply = {'ok', now, s.epoch, s.seq, text(s.pay_in), ''}
local bucket = redis.call('HGET', holdings_key, bucket_of(hash, s.buckets)) or ''
local first, last = user_in(bucket, user)
if not first then return reply end
reply[6] = sub(bucket, first, last)
if s.items == 1 then
  for record = first, last, RECORD do
    local epoch, seq = unpack_bytes('>HI4', bucket, record + EPOCH_AT)
    reply[#reply + 1] = redis.call('HGET', issued_key, pack('>HI4', epoch % RELEASED, seq)) or ''
  end
end
return reply
