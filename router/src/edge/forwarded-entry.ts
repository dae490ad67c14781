/** Reads one entry of `X-Forwarded-For`. No standard defines its form. */
import { isIP } from "node:net";
import { plainAddress } from "./client-network.ts";

/** `[address]:port` or `[address]`. */
const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/;
/** `address:port` of IPv4, of IPv6 with all eight groups, or of IPv6 that ends in an IPv4 address. */
const withPort = /^(\d+(?:\.\d+){3}|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|[0-9a-f:]*:\d+(?:\.\d+){3}):\d{1,5}$/i;
/** `address:port` of IPv6 with `::`. Five digits can only be a port. */
const shortWithPort = /^([0-9a-f:]*::[0-9a-f:]*):\d{5}$/i;
/** No entry is longer. */
const charactersMax = 80;

/** Returns the address without port, brackets, quotes and zone, IPv4-mapped as IPv4; undefined without an address. */
export function readForwarded(entry: string): string | undefined {
  const text = entry.trim();
  if (text.length > charactersMax) return undefined;
  if (isIP(text) !== 0) return withoutZone(text);
  const bare = text.replace(/^"(.*)"$/, "$1").trim();
  const address = bracketed.exec(bare)?.[1] ?? withPort.exec(bare)?.[1] ?? shortWithPort.exec(bare)?.[1] ?? bare;
  return isIP(address) === 0 ? undefined : withoutZone(address);
}

/** Removes the zone, because it names an interface of the proxy's host. */
function withoutZone(address: string): string {
  const zone = address.indexOf("%");
  return plainAddress(zone < 0 ? address : address.slice(0, zone));
}
