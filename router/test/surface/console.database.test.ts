/** The console's listener: its sessions, its routes, and its streams. */
import { readFileSync, statSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { forThisFile } from "@weiche/shared/testing/for-this-file.ts";
import { asId, type SlotName } from "@weiche/shared/ids.ts";
import { SlotState } from "../../src/nodes/node-view.ts";
import type { NodeDetail } from "../../src/nodes/registry.ts";
import { operator } from "../../src/rights/accounts-context.ts";
import { codeMsMax, ConsoleSessions, sessionMsMax } from "../../src/surface/console/console-sessions.ts";
import { consoleRoutes, contract } from "../../src/surface/contract/contract.ts";
import type { Route } from "../../src/surface/contract/route.ts";
import { builtConsole, builtPortal } from "../../src/surface/server/built-pages.ts";
import { consoleEvents, cookieOf, nodeWithSlot, quietNode, startConsole, type ConsoleEvent } from "./console-rig.ts";
import { PutForwardClock } from "./put-forward-clock.ts";

const clock = new PutForwardClock();
let nodes: readonly NodeDetail[] = [];
const rig = await forThisFile(startConsole({ clock, details: () => nodes }));

const codeOf = (link: string) => link.split("#")[1]!;
const exchange = (code: string) => rig.send("POST", "/console/session", { code });
const errorOf = async (answer: Response) =>
  ((await answer.json()) as { error: { code: string; message: string } }).error;

describe("the one-time link", () => {
  test("opens one session, and is refused if it is used again, wrong or older than a minute [H9]", async () => {
    const code = codeOf(rig.link());
    const opened = await exchange(code);
    expect(opened.status).toBe(201);
    const cookie = opened.headers.get("set-cookie")!;
    expect(cookie).toMatch(/^weiche-console=[\w-]{43}; Path=\/; Max-Age=43(200|199); HttpOnly; SameSite=Strict$/);
    expect((await rig.fetch("/api/console/session", { headers: { cookie: cookie.split(";")[0]! } })).status).toBe(200);
    expect((await exchange(code)).status).toBe(401);
    const late = codeOf(rig.link());
    clock.shift(codeMsMax);
    for (const bad of [code, late, "a".repeat(43), ""]) {
      const refused = await exchange(bad);
      expect([refused.status, refused.headers.get("set-cookie"), (await errorOf(refused)).code]).toEqual([
        401,
        null,
        "login_failed",
      ]);
    }
  });

  test("can be made several times at once, and each link opens one session", async () => {
    const links = [rig.link(), rig.link(), rig.link()];
    const statuses = await Promise.all(links.map(async (link) => (await exchange(codeOf(link))).status));
    expect(statuses).toEqual([201, 201, 201]);
  });

  test("can be made only on the admin socket", async () => {
    const cookie = await rig.signIn();
    expect((await rig.send("POST", "/console/links", {}, cookie)).status).toBe(404);
    expect((await rig.portal.send("POST", "/console/links", {})).status).toBe(404);
  });
});

describe("the session", () => {
  test("ends after twelve hours, also if no timer fired, and at once by the button [H9]", async () => {
    const [first, second] = [await rig.signIn(), await rig.signIn()];
    const status = async (cookie: string) => (await rig.fetch("/api/console/session", { headers: { cookie } })).status;
    expect((await rig.send("DELETE", "/console/session", {}, first)).status).toBe(204);
    expect([await status(first), await status(second)]).toEqual([401, 200]);
    clock.jump(sessionMsMax - 1_000);
    expect(await status(second)).toBe(200);
    clock.jump(1_000);
    expect(await status(second)).toBe(401);
  });

  test("survives a restart of the router in a private file without tokens", async () => {
    const cookie = await rig.signIn();
    const token = cookie.split("=")[1]!;
    const file = join(rig.directory, "sessions.json");
    await expect.poll(() => readFileSync(file, "utf8")).toContain(token.length > 0 ? '"' : "");
    await expect.poll(() => findIn(file, token)).toBe("a session");
    expect(readFileSync(file, "utf8")).not.toContain(token);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  /** Looks for the session in a new object, which reads the file as a restarted router does. */
  function findIn(file: string, token: string): string {
    const sessions = new ConsoleSessions(file, clock, { consoleSessionsNotSaved() {} });
    const found = sessions.find(token);
    void sessions[Symbol.asyncDispose]();
    return found ? "a session" : "none";
  }

  test.each([
    [
      "when the button ends it",
      async (cookie: string) => void (await rig.send("DELETE", "/console/session", {}, cookie)),
    ],
    ["when its time is over", async () => clock.shift(sessionMsMax)],
  ])("ends its pages' streams %s [H9]", async (_how, end) => {
    const cookie = await rig.signIn();
    const stream = await rig.fetch("/api/console/events?show=nodes", { headers: { cookie } });
    const ended = stream.text().then(
      () => "ended",
      () => "ended",
    );
    await end(cookie);
    expect(await ended).toBe("ended");
    expect((await rig.fetch("/api/console/events?show=nodes", { headers: { cookie } })).status).toBe(401);
  });
});

describe("routes", () => {
  const routes: Readonly<Record<string, Route>> = contract;
  const served = new Set<string>(consoleRoutes);

  test("the console serves only its own routes and those of nodes, blocks and requests [H9]", () => {
    const own = ["openConsole", "showConsole", "closeConsole", "watchConsole", "startCapacity", "cancelCapacity"];
    const blocks = [
      "createAccount",
      "showAccount",
      "blockAccount",
      "unblockAccount",
      "listUsers",
      "blockUser",
      "unblockUser",
    ];
    const nodes = ["setMaintenance", "acknowledgeFailures", "prewarm"];
    const requests = ["listRunning", "listPast", "explainRequest"];
    expect([...served].toSorted()).toEqual([...own, ...blocks, ...nodes, ...requests].toSorted());
  });

  const fill = (path: string) => path.replace(":id", "019aadea-0000-7000-8000-000000000000");

  test.each(Object.keys(routes).filter((name) => !served.has(name)))(
    "the console does not serve %s, even with a session [H9]",
    async (name) => {
      const cookie = await rig.signIn();
      const { method, path } = routes[name]!;
      const answer =
        method === "GET"
          ? await rig.fetch(`/api${fill(path)}`, { headers: { cookie } })
          : await rig.send(method, fill(path), {}, cookie);
      // `explainRequest` takes the last part of the address of `listEnded` and `countRunning` for a malformed id.
      expect(answer.status).toBe(path.startsWith("/requests/") && method === "GET" ? 400 : 404);
    },
  );

  const [reads, changes] = [
    consoleRoutes.filter((name) => routes[name]!.method === "GET"),
    consoleRoutes.filter((name) => routes[name]!.method !== "GET"),
  ];

  test.each(reads)("%s needs a session of the console [H9]", async (name) => {
    for (const cookie of ["", cookieOf("a".repeat(43)), `__Host-weiche=${"a".repeat(43)}`]) {
      const answer = await rig.fetch(`/api${fill(routes[name]!.path)}`, { headers: { cookie } });
      expect(answer.status).toBe(401);
    }
  });

  test.each(changes)("%s must come from the console's own page [H9]", async (name) => {
    const { method, path } = routes[name]!;
    const cookie = await rig.signIn();
    const json = { "content-type": "application/json" };
    for (const headers of [
      json,
      { ...json, origin: "http://127.0.0.1:8081" },
      { ...json, origin: rig.origin, "sec-fetch-site": "same-site" },
      { "content-type": "text/plain", origin: rig.origin },
    ]) {
      const init = { method, headers: { ...headers, cookie }, body: "{}" };
      expect([403, 415]).toContain((await rig.fetch(`/api${fill(path)}`, init)).status);
    }
  });

  test.each(changes.filter((name) => name !== "openConsole"))("%s also needs a session", async (name) => {
    const { method, path } = routes[name]!;
    expect((await rig.send(method, fill(path), {})).status).toBe(401);
  });

  test("neither listener serves files of the other application, except files that both contain [H9]", async () => {
    const files = async (directory: string) => new Set(await readdir(join(directory, "assets")));
    const [portal, console] = [await files(builtPortal), await files(builtConsole)];
    const ownOfConsole = [...console].filter((name) => !portal.has(name));
    expect(ownOfConsole.length).toBeGreaterThan(5);
    for (const name of ownOfConsole) expect((await rig.portal.fetch(`/assets/${name}`)).status).toBe(404);
    for (const name of [...portal].filter((one) => !console.has(one)))
      expect((await rig.fetch(`/assets/${name}`)).status).toBe(404);
    const paths = ["/slots", "/pipeline", "/console.html"];
    for (const path of paths) expect((await rig.portal.fetch(path)).status).toBe(404);
    const code = await Promise.all([...portal].map((name) => readFile(join(builtPortal, "assets", name), "utf8")));
    expect(code.some((text) => text.includes("/console/"))).toBe(false);
  });

  test("pages and answers have the portal's security headers", async () => {
    const [own, portals] = [await rig.fetch("/"), await rig.portal.fetch("/")];
    const names = ["content-security-policy", "referrer-policy", "x-frame-options", "cross-origin-resource-policy"];
    for (const name of names) expect(own.headers.get(name)).toBe(portals.headers.get(name));
    expect((await rig.fetch("/api/console/session")).headers.get("cache-control")).toBe("no-store");
  });
});

describe("a stream", () => {
  test("sends all items first, then only changed and removed ones, and a beat in between", async () => {
    nodes = [nodeWithSlot(), quietNode("gpu-2")];
    const stream = consoleEvents(rig, "show=nodes", await rig.signIn());
    const next = async () => (await stream.next()).value as ConsoleEvent;
    const all = await next();
    expect([all.name, Object.keys(all.data.items!)]).toEqual(["all", ["gpu-1", "gpu-2"]]);
    nodes = [nodeWithSlot({ running: 2 }), quietNode("gpu-2")];
    for (let event = await next(); event.data.items?.["gpu-1"]?.slots[0].running !== 2;) event = await next();
    nodes = [quietNode("gpu-2")];
    let gone = await next();
    while (gone.data.items?.["gpu-1"] !== null) gone = await next();
    expect(gone.name).toBe("some");
    await stream.return(undefined);
  });

  test("of slots has the closing drain, the waiters, and each past switch once", async () => {
    const nowMs = clock.monotonicMs();
    const past = { model: "m2", fromModel: "m1", failed: false, tookMs: 4_000, drainMs: 1_000, startMs: 3_000 };
    const histories = new Map([[asId<SlotName>("a"), [{ ...past, endedAtMs: nowMs - 60_000 }]]]);
    const draining = { state: SlotState.DRAINING_OPEN, nextModel: "m2", closesInMs: 6_000, oldestWaitingMs: 2_500 };
    nodes = [nodeWithSlot(draining, histories)];
    const stream = consoleEvents(rig, "show=slots", await rig.signIn());
    const first = (await stream.next()).value as ConsoleEvent;
    const seen = first.data.items!["node gpu-1"].node.slots[0];
    expect(seen).toMatchObject({ state: "draining-open", next: "m2", closesInSeconds: 6, oldestWaitingSeconds: 2.5 });
    const { history } = first.data.items!["history gpu-1/a"];
    expect(history.switches).toMatchObject([
      { from: "m1", model: "m2", failed: false, seconds: 4, parts: { drain: 1, start: 3 } },
    ]);
    expect(Math.abs(clock.now() - 60_000 - Date.parse(history.switches[0].endedAt))).toBeLessThan(5_000);
    nodes = [nodeWithSlot({ running: 2 }, histories)];
    const second = (await stream.next()).value as ConsoleEvent;
    expect(Object.keys(second.data.items!)).toEqual(["node gpu-1"]);
    await stream.return(undefined);
  });

  test("of accounts has package, use, refusals and blocks, can be sorted and searched, and has no deleted accounts", async () => {
    const acme = await rig.portal.newAccount("Acme 100%", { package: "Pro" });
    await rig.portal.newAccount("Globex");
    await rig.portal.database.pool.query(
      "insert into refusals (account_id, user_id, key_id, hour, code, count) values ($1, $2, $2, date_trunc('hour', to_timestamp($3 / 1000.0)), 'rate_limit_minute', 7)",
      [acme.accountId, acme.id, clock.now()],
    );
    const cookie = await rig.signIn();
    const gone = await rig.portal.newAccount("Gone 100%");
    await rig.portal.accounts.as(operator).life.delete(gone.accountId);
    expect((await rig.send("POST", `/accounts/${acme.accountId}/block`, {}, cookie)).status).toBe(200);
    expect((await rig.send("POST", `/users/${acme.id}/block`, {}, cookie)).status).toBe(200);
    const stream = consoleEvents(rig, "show=accounts&search=100%25&sort=refused", cookie);
    const { items } = ((await stream.next()).value as ConsoleEvent).data;
    expect(items!["total"]).toEqual({ total: 1 });
    expect(items![acme.accountId].account).toMatchObject({
      ...{ name: "Acme 100%", package: "Pro", quota: "80000000.000", used: "0.000", users: 1, blockedUsers: 1 },
      refused: [{ code: "rate_limit_minute", count: 7 }],
      blockedAt: expect.stringMatching(/^\d{4}-/),
    });
    await stream.return(undefined);
    const trail = await rig.portal.database.pool.query(
      "select action, actor, source from audit_log where action in ('account.block', 'user.block') and account_id = $1 order by action",
      [acme.accountId],
    );
    const by = { actor: "operator", source: "console 127.0.0.1" };
    expect(trail.rows).toMatchObject([
      { action: "account.block", ...by },
      { action: "user.block", ...by },
    ]);
  });

  test("of the pipeline has the usage that waits at each place, and the database's state", async () => {
    const report = { slots: [], maintenance: false, admitting: true, outbox: { records: 12n, oldestMs: 4_000 } };
    nodes = [quietNode("gpu-1", { report }), quietNode("gpu-2")];
    const stream = consoleEvents(rig, "show=pipeline", await rig.signIn());
    const { pipeline } = ((await stream.next()).value as ConsoleEvent).data.items!;
    expect(pipeline).toMatchObject({
      unacknowledged: { records: 12, oldestSeconds: 4, unknown: ["gpu-2"] },
      waitingForCommit: 3,
      setAside: { lastDay: 0, total: 0 },
    });
    expect(pipeline.database.answersInMs).toBeGreaterThanOrEqual(0);
    await stream.return(undefined);
  });
});

test("maintenance and prewarming from the console reach the node", async () => {
  nodes = [{ ...nodeWithSlot(), report: { slots: [], maintenance: true, admitting: true } }];
  const cookie = await rig.signIn();
  await rig.send("POST", "/nodes/maintenance", { node: "gpu-1", on: true }, cookie);
  expect(rig.wishes).toEqual(["maintenance gpu-1 true"]);
});
