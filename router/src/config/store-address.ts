/** Reads `limits.store`, the address of the store in which routers share limits. */
import { StartError } from "@weiche/shared/files/start-error.ts";
import { parseListen, type ListenAddress } from "@weiche/shared/http/listen.ts";

export interface StoreAddress {
  /** One server, Sentinels that know the primary, or nodes of a cluster. */
  readonly kind: "server" | "sentinel" | "cluster";
  readonly addresses: readonly ListenAddress[];
  /** The Sentinels' name of the primary. */
  readonly primary?: string;
  readonly database: number;
  readonly tls: boolean;
  readonly user?: string;
  readonly password?: string;
  /** The address for people, without user and password. */
  readonly shown: string;
}

const forms =
  "write memory, valkey://HOST:PORT, valkeys://HOST:PORT for TLS, valkey+sentinel://HOST:PORT,HOST:PORT/NAME or valkey+cluster://HOST:PORT,HOST:PORT";

/** Returns undefined for `memory`. Throws a `StartError` that does not quote the text, because it may contain a password. */
export function parseStore(text: string): StoreAddress | undefined {
  if (text === "memory") return undefined;
  const match = /^(valkeys?)(?:\+(sentinel|cluster))?:\/\/(?:([^@]*)@)?([^@/?#]+)(?:\/([^@?#]*))?$/.exec(text);
  if (!match) {
    const hint = /^rediss?:/.test(text) ? " (use valkey:// or valkeys:// for Redis, too)" : "";
    throw new StartError(`limits.store is not a valid address: ${forms}${hint}`);
  }
  const [, scheme, kind = "server", login, hosts, path = ""] = match;
  const usual = kind === "sentinel" ? 26_379 : 6_379;
  const addresses = hosts!.split(",").map((host) => parseListen(withPort(host, usual), "limits.store"));
  const refuse = (why: string) => new StartError(`limits.store ${why}: ${forms}`);
  if (kind === "server" && addresses.length > 1) throw refuse("has several addresses without +sentinel or +cluster");
  if (kind === "sentinel" && path === "") throw refuse("lacks the Sentinels' name of the primary");
  if (kind === "cluster" && path !== "") throw refuse("names a database, but a cluster has no databases");
  if (kind === "server" && !/^\d{0,5}$/.test(path)) throw refuse("must have a database number after the last slash");
  const [user = "", ...rest] = login?.split(":") ?? [];
  const [name, password] = [user, rest.join(":")].map(decoded);
  return {
    kind: kind as StoreAddress["kind"],
    addresses,
    ...(kind === "sentinel" && { primary: path }),
    database: kind === "server" ? Number(path) : 0,
    tls: scheme === "valkeys",
    ...(name && { user: name }),
    ...(password && { password }),
    shown: text.replace(/\/\/[^@]*@/, "//"),
  };
}

function withPort(host: string, port: number): string {
  return /:\d+$/.test(host) ? host : `${host}:${port}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new StartError("limits.store: write a % in user or password as %25");
  }
}
