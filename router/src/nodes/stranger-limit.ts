/**
 * Limits connections of nodes' ports that have not shown a certificate of ours yet. It acts before TLS. Nodes are free of
 * it once they are known: many agents behind one address, which all dial after a restart, only wait for each other.
 */
import type { Socket } from "node:net";
import type { Clock } from "@weiche/shared/time/clock.ts";
import { plainAddress, lineAndSiteOf } from "../edge/client-network.ts";
import { IpLimit } from "../edge/ip-limit.ts";

/** Handshakes of one address (IPv6: of one site) at a time. A handshake takes some milliseconds, and 5 s at most. */
export const handshakesPerAddressMax = 128;
/** Of all addresses together: what is left of the process' descriptors belongs to nodes and clients. */
export const handshakesMax = 512;
/** Of these, for addresses from which a node has come: strangers of many addresses cannot keep nodes from coming back. */
export const handshakesKept = 128;
/** Addresses of nodes that are remembered. Those whose nodes came last stay. */
const knownMax = 10_000;
/**
 * Handshakes of one address that may fail, and how fast their number recovers. One costs a few milliseconds of the event
 * loop, so that an address takes some percent of it at most.
 */
const failures = { perIpPerSecond: 5, perIpBurst: 100 };

export class StrangerLimit {
  readonly #failures: IpLimit;
  readonly #isTrusted: (address: string) => boolean;
  readonly #bySite = new Map<string, number>();
  /** Addresses (IPv6: lines) that have shown a certificate of ours, the last one at the end. */
  readonly #known = new Set<string>();
  #all = 0;

  /** `isTrusted`: whether the address is a proxy's, behind which nodes and strangers have one address. */
  constructor(clock: Clock, isTrusted: (address: string) => boolean) {
    this.#failures = new IpLimit(failures, clock);
    this.#isTrusted = isTrusted;
  }

  /** Connections that are not known yet. */
  get handshakes(): number {
    return this.#all;
  }

  /**
   * Whether a connection that was just accepted may stay. Then it counts until the returned function is called, once: with
   * whether it has shown a certificate of ours.
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
      else if (!isTrusted) this.#failures.admit(address);
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
