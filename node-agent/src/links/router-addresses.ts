/** Resolves the names of routers. A name that does not resolve keeps its last addresses. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { formatListen, parseListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import type { RouterAddress } from "./router-link.ts";

export interface RouterAddressesEvents {
  /** The name did not resolve. Its last addresses stay in use. */
  routerNameUnresolved(name: string, code: string): void;
}

/** A router that another router has announced. */
export type AnnouncedRouter = ListenAddress & Required<Pick<RouterAddress, "routerId">>;

export type Resolve = (name: string) => Promise<readonly string[]>;

export const lookupAll: Resolve = async (name) => (await lookup(name, { all: true })).map(({ address }) => address);

export class RouterAddresses {
  readonly #routers: readonly ListenAddress[];
  readonly #resolve: Resolve;
  readonly #events: RouterAddressesEvents;
  readonly #lastFound = new Map<string, readonly string[]>();
  /** The error codes of names. */
  readonly #unresolved = new Map<string, string>();

  /** `routers`: host:port, as configured. */
  constructor(routers: readonly string[], resolve: Resolve, events: RouterAddressesEvents) {
    this.#routers = routers.map((router) => parseListen(router, "routers"));
    this.#resolve = resolve;
    this.#events = events;
  }

  get someUnresolved(): boolean {
    return this.#unresolved.size > 0;
  }

  /** Lists the configured routers whose names have never resolved. */
  unknown(): readonly (ListenAddress & { readonly code: string })[] {
    return this.#routers.flatMap((router) => {
      const code = this.#unresolved.get(router.host);
      return code === undefined || this.#lastFound.has(router.host) ? [] : [{ ...router, code }];
    });
  }

  /** Returns all addresses, including those of `announced` routers, by their description. */
  async find(announced: readonly AnnouncedRouter[]): Promise<ReadonlyMap<string, RouterAddress>> {
    const found = await Promise.all([...announced, ...this.#routers].map((router) => this.#addressesOf(router)));
    return new Map(found.flat().map((address) => [describeAddress(address), address]));
  }

  async #addressesOf(router: ListenAddress | AnnouncedRouter): Promise<readonly RouterAddress[]> {
    const ips = isIP(router.host) ? [router.host] : await this.#ipsOf(router.host);
    return ips.map((ip) => ({ ...router, ip }));
  }

  async #ipsOf(host: string): Promise<readonly string[]> {
    try {
      const ips = await this.#resolve(host);
      this.#unresolved.delete(host);
      this.#lastFound.set(host, ips);
      return ips;
    } catch (error) {
      const { code = "unknown" } = error as NodeJS.ErrnoException;
      if (!this.#unresolved.has(host)) this.#events.routerNameUnresolved(host, code);
      this.#unresolved.set(host, code);
      return this.#lastFound.get(host) ?? [];
    }
  }
}

export function describeAddress({ host, ip, port }: RouterAddress): string {
  const listen = formatListen({ host, port });
  return host === ip ? listen : `${listen} (${ip})`;
}
