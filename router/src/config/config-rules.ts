/** Finds mistakes in a router.yaml whose single keys are valid. */
import { whatFails, type Finding } from "@weiche/shared/files/config-file.ts";
import {
  formatListen,
  isLoopback,
  parseListen,
  parseOwnListen,
  type ListenAddress,
} from "@weiche/shared/http/listen.ts";
import { holdsPassword, withPassword } from "@weiche/shared/files/private-file.ts";
import { checkOpsReach } from "@weiche/shared/program/ops-access.ts";
import { hostUrls, withOneHost } from "./database-url.ts";
import type { RawRouter } from "./config-schema.ts";
import { invoiceMistakes } from "./invoice-settings.ts";
import { parseStore } from "./store-address.ts";

/** The variables that override the listeners in the file. */
const variables = {
  api: "WEICHE_API_LISTEN",
  portal: "WEICHE_PORTAL_LISTEN",
  console: "WEICHE_CONSOLE_LISTEN",
  nodes: "WEICHE_NODES_LISTEN",
  data: "WEICHE_DATA_LISTEN",
  ops: "WEICHE_OPS_LISTEN",
} as const;

type RouterListen = Readonly<Record<"api" | "portal" | "nodes" | "data" | "ops", ListenAddress>> & {
  /** Undefined if the console is off. */
  readonly console?: ListenAddress | undefined;
};

/** Reads the addresses of listeners; variables override the file. Throws a `StartError`. */
export function readListen(raw: RawRouter, env: NodeJS.ProcessEnv) {
  const read = (name: keyof typeof variables) => {
    const variable = variables[name];
    const text = env[variable] ?? raw.listen[name];
    if (text === "off" && name === "console") return undefined;
    return parseOwnListen(text, `listen.${name} or ${variable}`);
  };
  return {
    api: read("api")!,
    portal: read("portal")!,
    /** Undefined if the console is off. */
    console: read("console"),
    nodes: read("nodes")!,
    data: read("data")!,
    ops: read("ops")!,
  } satisfies RouterListen;
}

/**
 * Returns the host:port that nodes dial for links. Returns undefined if the listener listens on all addresses and the
 * configuration names none. `listening`: the address of the links' listener.
 */
export function linkAddressOf(
  { announce, dataAdvertise }: { readonly announce?: string | undefined; readonly dataAdvertise?: string | undefined },
  listening: ListenAddress,
): string | undefined {
  if (announce !== undefined) return announce;
  const host = dataAdvertise === undefined ? listening.host : parseListen(dataAdvertise, "nodes.dataAdvertise").host;
  return isEverywhere(host) ? undefined : formatListen({ host, port: listening.port });
}

function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Finds listeners that other hosts could reach without TLS. */
export function* exposures(raw: RawRouter, listen: RouterListen): Iterable<Finding> {
  for (const what of ["nodes", "data"] as const) {
    if (raw.nodes.tls || isLoopback(listen[what].host)) continue;
    const message = `listen.${what} ${formatListen(listen[what])} is not loopback: it needs nodes.tls (cert, key, ca)`;
    yield [["listen", what], message];
  }
  const { console: ofConsole } = listen;
  if (ofConsole && !raw.tls && !isLoopback(ofConsole.host))
    yield [
      ["listen", "console"],
      `listen.console ${formatListen(ofConsole)} is not loopback: it needs tls (cert, key); or listen on 127.0.0.1, or turn it off`,
    ];
}

/** Finds mistakes in the file alone, because environment variables may override its listeners. */
export function* contradictions(raw: RawRouter): Iterable<Finding> {
  const wrong = Object.entries(raw.listen).flatMap(([name, text]) =>
    name === "console" && text === "off" ? [] : whatFails(["listen", name], () => parseListen(text, `listen.${name}`)),
  );
  yield* wrong;
  if (wrong.length === 0) {
    const listen = readListen(raw, {});
    yield* exposures(raw, listen);
    const isProtected = raw.ops?.tls !== undefined || raw.ops?.tokenFile !== undefined;
    yield* whatFails(["listen", "ops"], () => checkOpsReach(listen.ops, isProtected));
  }
  for (const key of ["announce", "dataAdvertise"] as const) {
    const text = raw.nodes[key];
    if (text !== undefined) yield* whatFails(["nodes", key], () => parseListen(text, `nodes.${key}`));
  }
  const { url: databaseUrl } = raw.database;
  if (databaseUrl !== undefined) yield* whatFails(["database", "url"], () => hostUrls(databaseUrl));
  for (const key of ["database", "smtp"] as const) {
    const { url, passwordFile } = raw[key] ?? {};
    if (passwordFile === undefined) continue;
    if (!url) yield [[key, "passwordFile"], `${key}.passwordFile needs ${key}.url`];
    else yield* whatFails([key, "url"], () => withOneHost(url, (one) => withPassword(one, "password", key)));
  }
  yield* storeMistakes(raw);
  if (raw.invoices) yield* invoiceMistakes(raw.invoices);
}

/** Finds mistakes in the settings of the limit store. */
export function* storeMistakes({ limits }: RawRouter): Iterable<Finding> {
  const { store = "memory", storePasswordFile, storeTls } = limits;
  const wrong = whatFails(["limits", "store"], () => parseStore(store));
  if (wrong.length > 0) return yield* wrong;
  const address = parseStore(store);
  if (storePasswordFile !== undefined && !address)
    yield [["limits", "storePasswordFile"], "limits.storePasswordFile needs an address in limits.store"];
  if (storePasswordFile !== undefined && address?.password)
    yield [["limits", "store"], "limits.store contains a password: remove it or limits.storePasswordFile"];
  if (storeTls && !address?.tls)
    yield [["limits", "storeTls"], "limits.storeTls needs a limits.store that begins with valkeys"];
  if ((storeTls?.cert === undefined) !== (storeTls?.key === undefined))
    yield [["limits", "storeTls"], "limits.storeTls needs both cert and key, or neither"];
}

/** Lists the settings whose URL contains a password. If there is one, other users must not be able to read the file. */
export function passwordsIn({ database, smtp, limits }: RawRouter): readonly string[] {
  const urls = { "database.url": database.url, "smtp.url": smtp?.url, "limits.store": limits.store };
  return Object.entries(urls).flatMap(([key, url]) => (holdsPassword(url ?? "") ? [key] : []));
}
