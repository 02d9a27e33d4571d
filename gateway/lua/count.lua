-- Counts a ticket that a node is about to keep for a WebSocket, over all nodes.
-- KEYS[1] dibs:tickets:{made}, how many tickets were made in the present span of time
-- ARGV[1] how long a span is, in milliseconds
-- Returns {tickets of this span, this one included; milliseconds until the next span}
-- Retry: safe; a ticket that is counted twice lets one less be made in the span.
local made = redis.call('INCR', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  left = tonumber(ARGV[1])
end
return {made, left}
