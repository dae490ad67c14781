/**
 * Limits connections to the node ports whose clients have not yet shown a certificate of our authority. It acts before
 * TLS. Once a node is known, the limit no longer counts its connection. Agents behind one address that all dial after a
 * restart therefore only wait for each other.
 */
import type { Socket } from "node:net";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { plainAddress, lineAndSiteOf } from "../edge/client-network.ts";
import { IpLimit } from "../edge/ip-limit.ts";

/** Concurrent handshakes of one address (IPv6: of one site). A handshake takes some milliseconds, and 5 s at most. */
export const handshakesPerAddressMax = 128;
/** Concurrent handshakes of all addresses. The rest of the process's descriptors belongs to nodes and clients. */
export const handshakesMax = 512;
/**
 * The part of these handshakes that is reserved for addresses of known nodes, so that other clients cannot keep nodes
 * from connecting.
 */
export const handshakesKept = 128;
/** Number of remembered addresses of nodes. The addresses used last stay. */
const knownMax = 10_000;
/**
 * Failed handshakes that one address may have, and how many it regains per second. A handshake costs a few milliseconds
 * of the event loop, so that one address uses at most some percent of it.
 */
export const failures = { perIpPerSecond: 5, perIpBurst: 100 };

export class StrangerLimit {
  readonly #failures: IpLimit;
  readonly #isTrusted: (address: string) => boolean;
  readonly #bySite = new Map<string, number>();
  /**
   * Addresses (IPv6: lines) from which a client has shown a certificate of our authority, in the order of their last
   * use.
   */
  readonly #known = new Set<string>();
  #all = 0;

  /**
   * `isTrusted` returns whether the address belongs to a proxy, behind which nodes and other clients share one address.
   */
  constructor(clock: Clock, isTrusted: (address: string) => boolean) {
    this.#failures = new IpLimit(failures, clock);
    this.#isTrusted = isTrusted;
  }

  /** Number of connections whose handshake is not complete. */
  get handshakes(): number {
    return this.#all;
  }

  /**
   * Admits an accepted connection, or returns undefined. An admitted connection counts until the returned function is
   * called, once, with whether the client has shown a certificate of our authority.
   */
  admit({ remoteAddress }: Pick<Socket, "remoteAddress">): ((isKnown: boolean) => void) | undefined {
    if (remoteAddress === undefined) return undefined; // the client has disconnected already
    const address = plainAddress(remoteAddress);
    const isTrusted = this.#isTrusted(address);
    const [line, site = line] = lineAndSiteOf(address);
    const ofSite = this.#bySite.get(site) ?? 0;
    const kept = this.#known.has(line) ? 0 : handshakesKept;
    if (this.#all >= handshakesMax - kept) return undefined;
    if (!isTrusted && (ofSite >= handshakesPerAddressMax || !this.#failures.hasRoom(address))) return undefined;
    this.#count(site, 1);
    return (isKnown) => {
      this.#count(site, -1);
      if (isKnown) this.#remember(line);
      else if (!isTrusted) this.#failures.charge(address);
    };
  }

  #remember(line: string): void {
    this.#known.delete(line);
    this.#known.add(line);
    if (this.#known.size > knownMax) this.#known.delete(this.#known.values().next().value!);
  }

  #count(site: string, by: 1 | -1): void {
    this.#all += by;
    const count = (this.#bySite.get(site) ?? 0) + by;
    if (count === 0) this.#bySite.delete(site);
    else this.#bySite.set(site, count);
  }
}
