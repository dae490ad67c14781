/**
 * Scripts for the limit store, which runs each one atomically. An account has four keys in the store. `times` lists its
 * last admissions, newest first. `live` sorts its live requests by the end of their leases, `begun` by their admission.
 * `told` holds refused requests, sorted by the time that each got in `retry-after`. All times are microseconds of the
 * store's clock. The scripts never let it run backwards: if a failover leads to a server whose clock is behind, they
 * use the time of the newest admission until that clock has caught up.
 */
import { createHash } from "node:crypto";
import {
  durationsMin,
  earlyMsMax,
  endedShare,
  lateMsMax,
  restFactor,
  toldMax,
  toldMsMax,
  windowMs,
  youngAgainMs,
  youngMs,
} from "./told-times.ts";

/** How long the store counts a live request whose router no longer renews the lease. */
export const leaseMs = 15_000;

export interface Script {
  readonly lua: string;
  readonly sha: string;
}

const now = `local times, live, begun, told = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
now = math.max(now, tonumber(redis.call('LINDEX', times, 0) or 0))
local function lease(id) redis.call('ZADD', live, string.format('%.0f', now + ${leaseMs * 1_000}), id) end
local function comeBack()
  redis.call('ZREMRANGEBYSCORE', told, '-inf', string.format('(%.0f', now - ${lateMsMax * 1_000}))
  local first = redis.call('ZRANGE', told, 0, 0, 'WITHSCORES')
  local has = first[2] and tonumber(first[2]) <= now + ${earlyMsMax * 1_000}
  if has then redis.call('ZREM', told, first[1]) end
  return has
end
local function forgetEnded()
  for _, id in ipairs(redis.call('ZRANGE', begun, 0, -1)) do
    if not redis.call('ZSCORE', live, id) then redis.call('ZREM', begun, id) end
  end
end
`;

/**
 * Admits or refuses a request. ARGV: id, requests per minute, parallel requests. Returns 0 if the request is admitted, -1
 * if the parallel limit refuses it, and the microseconds to wait if the minute refuses it.
 */
export const enterScript = script(`
local id, minute, parallel = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', live, '-inf', string.format('%.0f', now))
if redis.call('ZSCORE', live, id) then return 0 end
local oldest = minute == 0 and now or tonumber(redis.call('LINDEX', times, minute - 1) or 0)
local freed = oldest + ${windowMs * 1_000}
if freed > now then return freed - now end
if redis.call('ZCARD', live) >= parallel then return -1 end
comeBack()
if redis.call('ZCARD', begun) > 2 * parallel then forgetEnded() end
redis.call('ZADD', begun, string.format('%.0f', now), id)
redis.call('PEXPIRE', begun, ${leaseMs})
redis.call('LPUSH', times, string.format('%.0f', now))
redis.call('LTRIM', times, 0, minute - 1)
redis.call('PEXPIRE', times, ${windowMs})
lease(id)
redis.call('PEXPIRE', live, ${leaseMs})
return 0`);

/**
 * Replaces a router's live requests. ARGV: the router's prefix of ids, the number of ids that hold a place, these ids, then
 * the ids that ask for one.
 */
export const renewScript = script(`
local prefix, lastHeld, kept = ARGV[1], tonumber(ARGV[2]) + 2, {}
for i = 3, #ARGV do kept[ARGV[i]] = true end
for _, id in ipairs(redis.call('ZRANGE', live, 0, -1)) do
  if string.sub(id, 1, #prefix) == prefix and not kept[id] then redis.call('ZREM', live, id) end
end
for i = 3, #ARGV do
  if i <= lastHeld or redis.call('ZSCORE', live, ARGV[i]) then lease(ARGV[i]) end
end
redis.call('PEXPIRE', live, ${leaseMs})
forgetEnded()
redis.call('PEXPIRE', begun, ${leaseMs})
return 0`);

/**
 * Returns after how many whole seconds a refused request may come back, or 0 if too many were given a time before. ARGV:
 * id, requests per minute, parallel requests, 1 if the client reports a retry, then durations in microseconds in ascending
 * order. See told-times.ts.
 */
export const tellScript = script(`
local id, minute, parallel = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local function rest(age)
  local first = 5
  while ARGV[first] and tonumber(ARGV[first]) <= age do first = first + 1 end
  local longer = #ARGV - first + 1
  if longer < ${durationsMin} then return ${restFactor} * math.max(age, ${youngMs * 1_000}) end
  return tonumber(ARGV[first + math.ceil(longer * ${endedShare}) - 1]) - age
end
local function freeIn(ends, limit)
  if limit < 1 then return math.huge end
  table.sort(ends, function(a, b) return a > b end)
  return ends[limit] or 0
end
local hasComeBack = comeBack() or ARGV[4] == '1'
local ofMinute, ofPlaces = {}, {}
local function admitted(at) table.insert(ofMinute, at - now + ${windowMs * 1_000}) end
for _, at in ipairs(redis.call('LRANGE', times, 0, -1)) do admitted(tonumber(at)) end
for _, one in ipairs(redis.call('ZRANGEBYSCORE', live, string.format('(%.0f', now), '+inf')) do
  local age = now - tonumber(redis.call('ZSCORE', begun, one) or now)
  local again = hasComeBack and ${restFactor} * math.max(age, ${youngAgainMs * 1_000}) or 0
  table.insert(ofPlaces, math.max(rest(age), again))
end
local before = redis.call('ZRANGE', told, 0, -1, 'WITHSCORES')
for i = 2, #before, 2 do
  admitted(tonumber(before[i]))
  table.insert(ofPlaces, tonumber(before[i]) - now + rest(0))
end
local wait = math.max(freeIn(ofMinute, minute), freeIn(ofPlaces, parallel))
if wait > ${toldMsMax * 1_000} then return 0 end
local seconds = math.max(1, math.ceil(wait / 1000000))
if #before / 2 < ${toldMax} then redis.call('ZADD', told, string.format('%.0f', now + seconds * 1000000), id) end
redis.call('PEXPIRE', told, ${toldMsMax + lateMsMax})
return seconds`);

/** Returns the number of admissions within the last minute and the number of live requests. */
export const useScript = script(
  `
local recent = 0
for _, at in ipairs(redis.call('LRANGE', times, 0, -1)) do
  if tonumber(at) <= now - ${windowMs * 1_000} then break end
  recent = recent + 1
end
return {recent, redis.call('ZCOUNT', live, string.format('(%.0f', now), '+inf')}`,
  " flags=no-writes",
);

/** Adds a first line by which the store refuses the whole script if it may not write or has no memory left. */
function script(body: string, flags = ""): Script {
  const lua = `#!lua${flags}\n${now}${body}`;
  return { lua, sha: createHash("sha1").update(lua).digest("hex") };
}
