-- Gives a node's counts of campaigns to the other nodes, and takes theirs.
-- KEYS[1] dibs:{meters}:watched, a sorted set of campaigns by until when they are watched, in ms
-- KEYS[2] dibs:{meters}:counts, a hash of counts by "campaign/node", each after until when it is good, in ms
-- ARGV[1] the node, ARGV[2] how long all of it is good for, in ms, ARGV[3] how many campaigns the node watches, then
-- these, then pairs of a campaign and the node's counts of it
-- Returns {how many campaigns are watched by any node, these..., then a campaign, a node and its counts, for each other
-- node's counts of a campaign that this node watches}
-- Retry: safe; it sets what is set.
local watched_key, counts_key = KEYS[1], KEYS[2]
local node, keep, mine = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local good = string.format('%.0f', now + keep)
redis.call('ZREMRANGEBYSCORE', watched_key, '-inf', string.format('%.0f', now))
local watches = {}
for i = 4, 3 + mine do
  watches[ARGV[i]] = true
  redis.call('ZADD', watched_key, good, ARGV[i])
end
for i = 4 + mine, #ARGV, 2 do redis.call('HSET', counts_key, ARGV[i] .. '/' .. node, good .. ' ' .. ARGV[i + 1]) end
redis.call('PEXPIRE', watched_key, keep)
redis.call('PEXPIRE', counts_key, keep)

local answer = redis.call('ZRANGE', watched_key, 0, -1)
table.insert(answer, 1, #answer)
local all = redis.call('HGETALL', counts_key)
for i = 1, #all, 2 do
  local campaign, from = string.match(all[i], '^(.*)/([^/]*)$')
  local until_ms, counts = string.match(all[i + 1], '^(%d+) (.*)$')
  if tonumber(until_ms) <= now then
    -- The node has left, or nobody watches the campaign any more.
    redis.call('HDEL', counts_key, all[i])
  elseif watches[campaign] and from ~= node then
    answer[#answer + 1] = campaign
    answer[#answer + 1] = from
    answer[#answer + 1] = counts
  end
end
return answer
