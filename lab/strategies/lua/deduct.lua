-- Takes one from the stock in a campaign's hash, if any is left.
-- KEYS[1] the campaign's hash
-- ARGV[1] the field of the stock
-- Returns what was left before, 0 when nothing was, nil when there is no campaign.
-- Retry: not safe, it takes again.
local campaign, field = KEYS[1], ARGV[1]
if redis.call('HEXISTS', campaign, field) == 1 then
  local stock = tonumber(redis.call('HGET', campaign, field))
  if stock > 0 then
    redis.call('HINCRBY', campaign, field, -1)
    return stock
  end
  return 0
end
return nil
