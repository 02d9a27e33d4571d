-- Gives one packet to each user who has none, in their order.
-- KEYS[1] the packets, KEYS[2] what was taken, KEYS[3] who has one
-- ARGV[1..n] the users
-- Returns for each user 0 with the packet's id, 1 when they have one, -1 when none is left.
-- Retry: safe, a user who got one has it then.
local packets, taken, owners = KEYS[1], KEYS[2], KEYS[3]
local answers = {}
for i, user in ipairs(ARGV) do
  if redis.call('HEXISTS', owners, user) == 1 then
    answers[i] = {1, ''}
  else
    local packet = redis.call('RPOP', packets)
    if packet then
      local data = cjson.decode(packet)
      data['userId'] = user
      redis.call('HSET', owners, user, data['id'])
      redis.call('LPUSH', taken, cjson.encode(data))
      answers[i] = {0, tostring(data['id'])}
    else
      answers[i] = {-1, ''}
    end
  end
end
return answers
