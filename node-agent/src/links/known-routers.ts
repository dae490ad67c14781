/**
 * The routers that a router has told of, beside those that agent.yaml names. The last list is kept in a file: an agent that
 * starts while the routers of its configuration are away finds the others.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { KnownRouter } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { parseListen } from "@weiche/shared/http/listen.ts";
import { routersMax } from "@weiche/shared/wire/link-bounds.ts";
import type { AnnouncedRouter } from "./router-addresses.ts";

export class KnownRouters {
  readonly #file: string | undefined;
  #all: readonly KnownRouter[] = [];

  /** `file`: where the list is kept; absent: nowhere. An unreadable one is as none. */
  constructor(file?: string) {
    this.#file = file;
    if (file !== undefined) this.#all = read(file);
  }

  /** Takes the list of a router in the place of the one before. Returns whether it is another one. */
  hear(routers: readonly KnownRouter[]): boolean {
    const all = routers.filter(isDialable).slice(0, routersMax);
    const text = JSON.stringify(all);
    if (text === JSON.stringify(this.#all)) return false;
    this.#all = all;
    if (this.#file !== undefined) replace(this.#file, text);
    return true;
  }

  /** `linkedBy`: the host:port by which a router is linked already; it is dialled at no other then. */
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

/** A disk that is full keeps the list of before. */
function replace(file: string, text: string): void {
  try {
    writeFileSync(`${file}.tmp`, text, { mode: 0o600 });
    renameSync(`${file}.tmp`, file);
  } catch {
    return;
  }
}
