/**
 * Limits new connections per address to five times its request limit. Further connections are reset without an answer,
 * because a TLS handshake and a response would cost too much. Trusted proxies are exempt.
 */
import type { Socket } from "node:net";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { plainAddress } from "./client-network.ts";
import { readTrusted } from "./client-address.ts";
import { IpLimit, timesAsMany, type IpLimitSettings } from "./ip-limit.ts";

const connectionsPerRequest = 5;

/** Returns whether a new connection may stay. */
export type ConnectionLimit = (socket: Socket) => boolean;

export function createConnectionLimit(
  limits: IpLimitSettings & { readonly trustedProxies: readonly string[] },
  clock: Clock,
): ConnectionLimit {
  const limit = new IpLimit(timesAsMany(limits, connectionsPerRequest), clock);
  const isTrusted = readTrusted(limits.trustedProxies);
  return ({ remoteAddress }) => {
    // The client has already disconnected.
    if (remoteAddress === undefined) return false;
    const address = plainAddress(remoteAddress);
    return isTrusted(address) || limit.admit(address);
  };
}
