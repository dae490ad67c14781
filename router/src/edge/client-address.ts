/** Finds a client's address: the peer of the connection, or the address that a trusted proxy writes in `X-Forwarded-For`. */
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { plainAddress, unknownAddress } from "./client-network.ts";
import { readForwarded } from "./forwarded-entry.ts";

/** Returns the client's address, or `unknownAddress` if a trusted proxy wrote an entry without an address. */
type ClientAddress = (request: IncomingMessage) => string;

/**
 * `trustedProxies`: addresses or networks such as `10.0.0.0/8`. Throws a `StartError` for any other text. `onUnread` gets
 * each entry without an address, and the proxy that wrote it.
 */
export function createClientAddress(
  trustedProxies: readonly string[],
  onUnread: (proxy: string, entry: string) => void = () => {},
): ClientAddress {
  if (trustedProxies.length === 0) return (request) => plainAddress(request.socket.remoteAddress ?? "");
  const isTrusted = readTrusted(trustedProxies);
  return (request) => {
    let address = plainAddress(request.socket.remoteAddress ?? "");
    if (isIP(address) === 0) return address;
    // Each proxy appends its peer's address. So entries are trusted from the right while their writers are trusted proxies.
    const header = String(request.headers["x-forwarded-for"] ?? "");
    const forwarded = header.trim() === "" ? [] : header.split(",");
    while (forwarded.length > 0 && isTrusted(address)) {
      const entry = forwarded.pop()!;
      const next = readForwarded(entry);
      if (next === undefined) {
        onUnread(address, entry);
        return unknownAddress;
      }
      address = next;
    }
    return address;
  };
}

/** Returns a function that returns whether an address is in one of these networks. Throws a `StartError` for other text. */
export function readTrusted(trustedProxies: readonly string[]): (address: string) => boolean {
  if (trustedProxies.length === 0) return () => false;
  const trusted = readNetworks(trustedProxies);
  return (address) => isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

function readNetworks(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = isIP(address);
    const bits = prefix === undefined ? (family === 6 ? 128 : 32) : Number(prefix);
    if (family === 0 || !/^\d*$/.test(prefix ?? "") || bits > (family === 6 ? 128 : 32) || prefix === "")
      throw new StartError(
        `limits.trustedProxies: "${network}" is neither an address nor a network such as 10.0.0.0/8`,
      );
    list.addSubnet(address, bits, family === 6 ? "ipv6" : "ipv4");
  }
  return list;
}
