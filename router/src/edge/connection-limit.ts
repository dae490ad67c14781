/**
 * How many connections one address may open: five for each request that it may send. Beyond that it is not told anything,
 * since a handshake, a head and a page cost more than the refusal is worth. A trusted proxy is not counted.
 */
import type { Socket } from "node:net";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { plainAddress } from "./client-network.ts";
import { readTrusted } from "./client-address.ts";
import { IpLimit, timesAsMany, type IpLimitSettings } from "./ip-limit.ts";

const connectionsPerRequest = 5;

/** Whether a connection that has just been accepted is let in. */
export type ConnectionLimit = (socket: Socket) => boolean;

export function createConnectionLimit(
  limits: IpLimitSettings & { readonly trustedProxies: readonly string[] },
  clock: Clock,
): ConnectionLimit {
  const limit = new IpLimit(timesAsMany(limits, connectionsPerRequest), clock);
  const isTrusted = readTrusted(limits.trustedProxies);
  return ({ remoteAddress }) => {
    // It has gone already.
    if (remoteAddress === undefined) return false;
    const address = plainAddress(remoteAddress);
    return isTrusted(address) || limit.admit(address);
  };
}
