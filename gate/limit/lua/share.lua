-- Gives a node its share of a limit, by what is asked of it.
-- KEYS[1] dibs:limit:{name}, a hash: node -> "share asked until", in billionths,
-- claims and ms of this server's clock
-- ARGV[1] the node, ARGV[2] claims asked of it since the last time, ARGV[3] how
-- long a share is held, in ms
-- Returns {the share in billionths, how many nodes hold some}
-- Retry: safe; the last call counts.
local key, me, asked, hold = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local WHOLE = 1000000000
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local held, total, nodes = 0, asked, 1
local all = redis.call('HGETALL', key)
for i = 1, #all, 2 do
  if all[i] ~= me then
    local share, demand, ends = string.match(all[i + 1], '^(%d+) (%d+) (%d+)$')
    if not ends or tonumber(ends) <= now then
      redis.call('HDEL', key, all[i])
    else
      held, total, nodes = held + tonumber(share), total + tonumber(demand), nodes + 1
    end
  end
end
-- A tenth is for all alike, so that a node to which the crowd moves has some.
local share = 0.1 / nodes + (total > 0 and 0.9 * asked / total or 0.9 / nodes)
share = math.max(0, math.min(math.floor(share * WHOLE), WHOLE - held))
redis.call('HSET', key, me, string.format('%d %d %d', share, asked, now + hold))
redis.call('PEXPIRE', key, hold * 2)
return {share, nodes}
