-- Adds what a node used of limits of users, and says how much all nodes have.
-- KEYS[1..n] dibs:limit:{users}:<key>, each the moment in microseconds of this server's
-- clock at which the bucket will be as if never used
-- ARGV[1..2n] for each key: microseconds that one claim is worth, claims used
-- Returns for each key how far its moment is ahead of now, in microseconds
-- Retry: not safe; what was used is counted twice, which lets less through.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local ahead = {}
for i = 1, #KEYS do
  local each, used = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local moment = math.max(tonumber(redis.call('GET', KEYS[i]) or '0'), now) + each * used
  ahead[i] = math.floor(moment - now)
  if ahead[i] > 0 then
    redis.call('SET', KEYS[i], string.format('%d', moment), 'PX', math.ceil(ahead[i] / 1000) + 1)
  end
end
return ahead
