/**
 * Scripts for the limit store, which runs each as a whole. An account has two keys there: a list of the
 * times of its last admissions, newest first, and a sorted set of its live requests by the end of their leases. Both in
 * microseconds of the store's clock, which never runs backwards here: after a failover to a server whose clock is
 * behind, the time of the newest admission is taken until that clock has caught up.
 */
import { createHash } from "node:crypto";
import { parallelRetryMs, windowMs } from "./memory-limiter.ts";

/** How long a live request is counted whose router says no more of it. */
export const leaseMs = 15_000;

export interface Script {
  readonly lua: string;
  readonly sha: string;
}

const now = `local times, live = KEYS[1], KEYS[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
now = math.max(now, tonumber(redis.call('LINDEX', times, 0) or 0))
local function lease(id) redis.call('ZADD', live, string.format('%.0f', now + ${leaseMs * 1_000}), id) end
`;

/**
 * ARGV: id, requests per minute, parallel requests. Returns how many microseconds to wait after a refusal by the minute,
 * 0: admitted, -1: refused by the parallel limit.
 */
export const enterScript = script(`
local id, minute, parallel = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', live, '-inf', string.format('%.0f', now))
if redis.call('ZSCORE', live, id) then return 0 end
local oldest = minute == 0 and now or tonumber(redis.call('LINDEX', times, minute - 1) or 0)
local freed = oldest + ${windowMs * 1_000}
if freed > now then return freed - now end
if redis.call('ZCARD', live) >= parallel then return -1 end
redis.call('LPUSH', times, string.format('%.0f', now))
redis.call('LTRIM', times, 0, minute - 1)
redis.call('PEXPIRE', times, ${windowMs})
lease(id)
redis.call('PEXPIRE', live, ${leaseMs})
return 0`);

/** ARGV: a router's prefix of ids, then all of its live ids. Those that are missing are added, its others removed. */
export const renewScript = script(`
local prefix, kept = ARGV[1], {}
for i = 2, #ARGV do kept[ARGV[i]] = true end
for _, id in ipairs(redis.call('ZRANGE', live, 0, -1)) do
  if string.sub(id, 1, #prefix) == prefix and not kept[id] then redis.call('ZREM', live, id) end
end
for i = 2, #ARGV do lease(ARGV[i]) end
redis.call('PEXPIRE', live, ${leaseMs})
return 0`);

/** Returns the number of admissions within the last minute, and that of live requests. */
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

/** The decision of the scripts where the parallel limit is reached. */
export const parallelRefused = { admitted: false, limit: "parallel", retryAfterMs: parallelRetryMs } as const;

/** The first line has the store refuse a script as a whole, where it may not write or has no memory left. */
function script(body: string, flags = ""): Script {
  const lua = `#!lua${flags}\n${now}${body}`;
  return { lua, sha: createHash("sha1").update(lua).digest("hex") };
}
