/** Finds what is wrong with a router.yaml whose keys are each valid. */
import { whatFails, type Finding } from "@weiche/shared/files/config-file.ts";
import { formatListen, isLoopback, parseListen, type ListenAddress } from "@weiche/shared/http/listen.ts";
import { holdsPassword, withPassword } from "@weiche/shared/files/private-file.ts";
import { checkOpsReach } from "@weiche/shared/program/ops-access.ts";
import type { RawRouter } from "./config-schema.ts";

/** Listeners: the variable that wins over the file, and the address without both. */
export const listeners = {
  api: { variable: "WEICHE_API_LISTEN", usual: "127.0.0.1:8080" },
  portal: { variable: "WEICHE_PORTAL_LISTEN", usual: "127.0.0.1:8081" },
  console: { variable: "WEICHE_CONSOLE_LISTEN", usual: "127.0.0.1:8082" },
  nodes: { variable: "WEICHE_NODES_LISTEN", usual: "127.0.0.1:7443" },
  data: { variable: "WEICHE_DATA_LISTEN", usual: "127.0.0.1:7444" },
  ops: { variable: "WEICHE_OPS_LISTEN", usual: "127.0.0.1:9464" },
} as const;

export type RouterListen = Readonly<Record<"api" | "portal" | "nodes" | "data" | "ops", ListenAddress>> & {
  /** Absent: it is off. */
  readonly console?: ListenAddress | undefined;
};

/** Variables win over the file. Throws `StartError`. */
export function readListen(raw: RawRouter, env: NodeJS.ProcessEnv) {
  const read = (name: keyof typeof listeners) => {
    const { variable, usual } = listeners[name];
    const text = env[variable] ?? raw.listen?.[name] ?? usual;
    return text === "off" && name === "console" ? undefined : parseListen(text, `listen.${name}`);
  };
  return {
    api: read("api")!,
    portal: read("portal")!,
    /** Absent: it is off. */
    console: read("console"),
    nodes: read("nodes")!,
    data: read("data")!,
    ops: read("ops")!,
  } satisfies RouterListen;
}

/** Finds listeners that others could reach without TLS. */
export function* exposures(raw: RawRouter, listen: RouterListen): Iterable<Finding> {
  for (const what of ["nodes", "data"] as const) {
    if (raw.nodes?.tls || isLoopback(listen[what].host)) continue;
    const message = `listen.${what} ${formatListen(listen[what])} is not loopback: it needs nodes.tls (cert, key, ca)`;
    yield [["listen", what], message];
  }
  const { console: ofConsole } = listen;
  if (ofConsole && !raw.tls && !isLoopback(ofConsole.host))
    yield [
      ["listen", "console"],
      `listen.console ${formatListen(ofConsole)} is not loopback: it needs tls (cert, key), or listen on 127.0.0.1, or turn it off`,
    ];
}

/** Judges the file alone: variables of the environment may replace its listeners. */
export function* contradictions(raw: RawRouter): Iterable<Finding> {
  const names = Object.keys(listeners) as (keyof typeof listeners)[];
  const wrong = names.flatMap((name): Finding[] => {
    const text = raw.listen?.[name];
    if (text === undefined || (name === "console" && text === "off")) return [];
    return whatFails(["listen", name], () => parseListen(text, `listen.${name}`));
  });
  yield* wrong;
  if (wrong.length === 0) {
    const listen = readListen(raw, {});
    yield* exposures(raw, listen);
    const isProtected = raw.ops?.tls !== undefined || raw.ops?.tokenFile !== undefined;
    yield* whatFails(["listen", "ops"], () => checkOpsReach(listen.ops, isProtected));
  }
  for (const key of ["database", "smtp"] as const) {
    const { url, passwordFile } = raw[key] ?? {};
    if (passwordFile === undefined) continue;
    if (!url) yield [[key, "passwordFile"], `${key}.passwordFile needs ${key}.url`];
    else yield* whatFails([key, "url"], () => withPassword(url, "password", key));
  }
}

/** The settings whose URL holds a password, for which nobody else may read the file. */
export function passwordsIn(raw: RawRouter): readonly string[] {
  return (["database", "smtp"] as const).flatMap((key) => (holdsPassword(raw[key]?.url ?? "") ? [`${key}.url`] : []));
}
