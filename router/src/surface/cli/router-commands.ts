/** `weiche status`, `weiche routers` and `weiche log`. */
import { Argument, Option, type Command } from "commander";
import { endingDays } from "@weiche/shared/http/certificates.ts";
import type { Actions } from "./actions.ts";
import { itemText, listText } from "./cli-text.ts";
import type { Answer } from "./client.ts";
import { logLevelText } from "@weiche/shared/program/log-level.ts";
import { duration } from "./duration.ts";

export function addRouterCommands(program: Command, { ask, print }: Actions): void {
  program
    .command("status")
    .description("Show the router's version, listeners, database, limit store, nodes, certificates and log level.")
    .action(async () => {
      const router = await ask("showRouter");
      print(router, (width) => routerText(router, width));
    });
  program
    .command("routers")
    .description("List the routers that share the database: state, version, requests, clock, limit store, catalogue.")
    .action(async () => {
      const routers = await ask("listRouters");
      print(routers, (width) => routersText(routers, width));
    });
  program
    .command("log")
    .description("Show the log level, or set it for a limited time.")
    .addArgument(new Argument("[level]").choices(["trace", "debug", "info", "warn", "error", "fatal"]))
    .addOption(
      new Option("--for <duration>", "how long the level applies, such as 5m, at most 24h")
        .argParser(duration)
        .default(duration("10m"), "10m"),
    )
    .action(async (level: string | undefined, { for: ms }: { for: number }) => {
      const seconds = Math.max(1, Math.round(ms / 1_000));
      const state =
        level === undefined ? await ask("showLogLevel") : await ask("setLogLevel", { body: { level, seconds } });
      print(state, () => logLevelText(state));
    });
}

function routerText(router: Answer<"showRouter">, width?: number): string {
  const { version, since, listeners, database, limitStore, otherRouters, nodes, certificates, log } = router;
  const answers = database.answerMs === undefined ? "DOES NOT ANSWER" : `answers in ${Math.ceil(database.answerMs)} ms`;
  const facts = itemText({
    version,
    since,
    ...listeners,
    database: `${database.server}, ${answers}`,
    "limit store": limitStoreText(limitStore),
    "other routers": otherRouters,
    invoices: invoicesText(router.invoices),
    nodes: `${nodes.live} of ${nodes.known} live`,
    log: logLevelText(log),
  });
  if (certificates.length === 0) return `${facts}\ncertificates   none: no listener uses TLS`;
  const shown = certificates.map((each) => ({ ...each, is: certificateWord(each.daysLeft) }));
  return `${facts}\n\n${listText(shown, ["use", "path", "expiresAt", "daysLeft", "is"], width)}`;
}

function invoicesText({ since }: Answer<"showRouter">["invoices"]): string {
  if (since === null) return "none: router.yaml has no `invoices`, so accounts see net lines without a number";
  return `for periods that end on ${since} or later`;
}

function limitStoreText(store: Answer<"showRouter">["limitStore"]): string {
  if (!store) return "none: this router counts account limits locally";
  if (!store.down) return `${store.address}, answers`;
  const { since, reason } = store.down;
  return `${store.address} DOES NOT ANSWER since ${since} (${reason}): this router counts locally`;
}

const routerColumns = ["router", "state", "version", "running", "clock", "limits", "catalogue", "since", "lastSeen"];

function routersText(routers: Answer<"listRouters">, width?: number): string {
  const table = listText(routers.map(routerRow), routerColumns, width);
  const serving = routers.filter(({ state }) => state === "ready" || state === "leaving");
  const catalogues = new Set(serving.flatMap(({ catalogue }) => catalogue ?? []));
  if (catalogues.size < 2) return table;
  return `${table}\n\nThese routers have ${catalogues.size} different catalogues, so they bill differently. Copy one file to all and run "weiche catalogue reload" on each.`;
}

function routerRow(router: Answer<"listRouters">[number]) {
  const { isThis, linkAddress, state, limitStore, catalogue, startedAt, seenAt } = router;
  const aheadMs = router.clockAheadMs ?? 0;
  const seconds = Math.abs(aheadMs) / 1_000;
  return {
    router: `${router.host ?? router.id} ${linkAddress ?? "(not announced)"}${isThis ? " *" : ""}`,
    ...{
      state,
      version: router.version,
      running: router.runningRequests,
      limits: limitStore,
      catalogue,
      since: startedAt,
    },
    clock: seconds < 0.1 ? "right" : `${seconds.toFixed(1)} s ${aheadMs > 0 ? "ahead" : "behind"}`,
    lastSeen: state === "gone" ? seenAt : "now",
  };
}

function certificateWord(daysLeft: number): string {
  return daysLeft < 0 ? "EXPIRED" : daysLeft < endingDays ? "renew it" : "fine";
}
