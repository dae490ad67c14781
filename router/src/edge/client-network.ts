/**
 * Decides which addresses share a limit. An IPv6 client can use all 2^64 addresses of its line (/64). A site or a rented
 * server often has 65,536 lines (/48).
 */
import { isIP } from "node:net";

/**
 * The address of a client that a trusted proxy does not name. Many different clients may have it, so limits per address do
 * not apply to it.
 */
export const unknownAddress = "unknown";

/**
 * Returns the network under which sign-in attempts are counted: a /24 or a /64. Text that is not an address stays
 * unchanged.
 */
export function networkOf(address: string): string {
  const plain = plainAddress(address);
  const family = isIP(plain);
  if (family === 4) return `${plain.split(".").slice(0, 3).join(".")}.0/24`;
  return family === 0 ? plain : lineOf(groupsOf(plain));
}

/** Returns the keys under which requests are counted: the IPv4 address, or the line (/64) and site (/48) of IPv6. */
export function lineAndSiteOf(address: string): readonly [line: string, site?: string] {
  const plain = plainAddress(address);
  if (isIP(plain) !== 6) return [plain];
  const groups = groupsOf(plain);
  return [lineOf(groups), `${hexOf(groups, 3)}::/48`];
}

/** Converts an IPv4-mapped IPv6 address (`::ffff:a.b.c.d`) to the IPv4 address. Any other text is returned as is. */
export function plainAddress(address: string): string {
  if (!/ffff/i.test(address) || isIP(address) !== 6) return address;
  const groups = groupsOf(address);
  if (groups.slice(0, 5).some((group) => group !== 0) || groups[5] !== 0xffff) return address;
  return [groups[6]! >> 8, groups[6]! & 255, groups[7]! >> 8, groups[7]! & 255].join(".");
}

function lineOf(groups: readonly number[]): string {
  return `${hexOf(groups, 4)}::/64`;
}

function hexOf(groups: readonly number[], count: number): string {
  let text = groups[0]!.toString(16);
  for (let at = 1; at < count; at++) text += `:${groups[at]!.toString(16)}`;
  return text;
}

/** Returns the eight groups of 16 bits. It uses plain loops, because it runs for each request of an IPv6 client. */
function groupsOf(address: string): number[] {
  const gap = address.indexOf("::");
  if (gap < 0) return readGroups(address);
  const left = readGroups(address.slice(0, gap));
  const right = readGroups(address.slice(gap + 2));
  while (left.length + right.length < 8) left.push(0);
  return left.concat(right);
}

/** Reads groups. `parseInt` ignores a zone (`%eth0`) after the last group. An IPv4 address at the end is two groups. */
function readGroups(text: string): number[] {
  const groups: number[] = [];
  for (const group of text === "" ? [] : text.split(":")) {
    if (!group.includes(".")) groups.push(Number.parseInt(group, 16));
    else {
      const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map((part) => Number.parseInt(part, 10));
      groups.push((a << 8) | b, (c << 8) | d);
    }
  }
  return groups;
}
