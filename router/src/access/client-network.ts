/** The network that an address belongs to, as far as attempts are counted together: a /24 or a /64. */
import { isIP } from "node:net";

export function networkOf(address: string): string {
  const family = isIP(address);
  if (family === 4) return `${address.split(".").slice(0, 3).join(".")}.0/24`;
  if (family === 0) return address;
  return `${firstGroups(address.split("%")[0]!).join(":")}::/64`;
}

/** The four groups of 16 bits that name the network. */
function firstGroups(address: string): string[] {
  const [head = "", tail] = address.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail ? tail.split(":") : [];
  // A dotted end stands for two groups; it can be none of the first four unless there are that many before it.
  const width = right.length + (address.includes(".") ? 1 : 0);
  const missing = tail === undefined ? 0 : 8 - left.length - width;
  return [...left, ...Array.from({ length: missing }, () => "0"), ...right]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16));
}
