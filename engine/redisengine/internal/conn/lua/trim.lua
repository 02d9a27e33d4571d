-- Drops entries from a journal's beginning that are settled and old enough, at
-- most a portion of them.
-- KEYS[1] dibs:{c:s}:journal
-- ARGV[1] id of the last entry that may go, ARGV[2] the time in ms before which it
-- was decided, ARGV[3] the most entries of the stream to drop
-- Returns {ok, clock in ms, 0, 0, dropped}
-- Retry: safe; what is gone stays gone.
local journal_key, up_to, before_ms, most = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local now = clock_ms()
if not typed(KEYS, {'stream'}) then return {'wrong_type', now, 0, 0} end
local entries, old = redis.call('XRANGE', journal_key, '-', up_to, 'COUNT', most), 0
-- One that cannot be read was settled all the same, and has no time to wait for;
-- what says a time far ahead of the clock is none that was written as it is.
local ahead_ms = 86400000
local function aged(payload)
  if not payload or #payload < 8 then return true end
  local at = unpack_bytes('>I6', payload, 3)
  return at < before_ms or at > now + ahead_ms
end
while old < #entries and aged(entries[old + 1][2][2]) do old = old + 1 end
if old > 0 then
  local epoch, seq = string.match(entries[old][1], '^(%d+)-(%d+)$')
  redis.call('XTRIM', journal_key, 'MINID', epoch .. '-' .. text(seq + 1))
end
return {'ok', now, 0, 0, old}
