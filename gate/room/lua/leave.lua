-- Gives up a user's number in a campaign's waiting room for good.
-- KEYS[1] dibs:{c:room}:meta, KEYS[2] dibs:{c:room}:gone, KEYS[3] dibs:{c:room}:u:B,
-- the bucket of the user
-- ARGV[1] the user, ARGV[2] the number, ARGV[3] the place, 0 when nobody is to be let
-- in for it, ARGV[4] when the keys expire, in ms
-- Returns {1 when the user had the number, else 0}
-- Retry: safe; a number is given up once.
local meta_key, gone_key, bucket = KEYS[1], KEYS[2], KEYS[3]
local user, number, place, expire = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local admitted = tonumber(redis.call('HGET', meta_key, 'admitted') or 0)
local held, given_up = string.match(redis.call('HGET', bucket, user) or '', '^(%d*)(%-*)$')
if held ~= number then return {0} end
-- A dash stays for each number that the user gave up: numbers are not without end.
redis.call('HSET', bucket, user, given_up .. '-')
redis.call('PEXPIREAT', bucket, expire)
redis.call('HINCRBY', meta_key, 'left', 1)
redis.call('PEXPIREAT', meta_key, expire)
-- A user whose turn it was has used it.
if place > 0 and place > math.floor(admitted) then
  redis.call('HSET', gone_key, string.format('%.0f', place), '1')
  redis.call('PEXPIREAT', gone_key, expire)
end
return {1}
