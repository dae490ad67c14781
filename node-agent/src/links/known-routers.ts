/**
 * The routers that other routers have announced, beside those in agent.yaml. The last list is stored in a file, so that
 * an agent that starts without its configured routers finds the others.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { KnownRouter } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { parseListen } from "@weiche/shared/http/listen.ts";
import { routersMax } from "@weiche/shared/wire/link-bounds.ts";
import type { AnnouncedRouter } from "./router-addresses.ts";

export class KnownRouters {
  readonly #file: string | undefined;
  #all: readonly KnownRouter[] = [];

  /**
   * `file`: where the list is stored. If undefined, the list is not stored. An unreadable file counts as an empty list.
   */
  constructor(file?: string) {
    this.#file = file;
    if (file !== undefined) this.#all = read(file);
  }

  /** Replaces the list with a router's new one. Returns whether it changed. */
  hear(routers: readonly KnownRouter[]): boolean {
    const all = routers.filter(isDialable).slice(0, routersMax);
    const text = JSON.stringify(all);
    if (text === JSON.stringify(this.#all)) return false;
    this.#all = all;
    if (this.#file !== undefined) replace(this.#file, text);
    return true;
  }

  /**
   * Returns the addresses to dial. `linkedBy`: the host:port by which a router is already linked, so that no other
   * address is dialled.
   */
  addresses(linkedBy: (routerId: string) => string | undefined): readonly AnnouncedRouter[] {
    const isOpen = ({ routerId, address }: KnownRouter) => (linkedBy(routerId) ?? address) === address;
    return this.#all.filter(isOpen).map(({ routerId, address }) => ({ routerId, ...parseListen(address, "a router") }));
  }
}

function isDialable({ routerId, address }: KnownRouter): boolean {
  try {
    return routerId !== "" && parseListen(address, "a router").port > 0;
  } catch {
    return false;
  }
}

function read(file: string): readonly KnownRouter[] {
  try {
    const all = JSON.parse(readFileSync(file, "utf8")) as readonly KnownRouter[];
    return all.filter(isDialable);
  } catch {
    return [];
  }
}

/** On a full disk the old list stays. */
function replace(file: string, text: string): void {
  try {
    writeFileSync(`${file}.tmp`, text, { mode: 0o600 });
    renameSync(`${file}.tmp`, file);
  } catch {
    return;
  }
}
