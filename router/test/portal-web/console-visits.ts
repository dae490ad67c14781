/** Opens a browser and a console with nodes in every state, for the tests of its pages. */
import { systemClock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import { createRandom } from "@weiche/shared/random.ts";
import type { ConsolePage } from "../../src/surface/contract/console.ts";
import { SlotState, type EngineFailure, type PastSwitch, type SlotView } from "../../src/nodes/node-view.ts";
import type { NodeDetail } from "../../src/nodes/registry.ts";
import { commitUsage } from "../../src/usage/usage-commit.ts";
import { makeUsageDays } from "../../src/usage/usage-days.ts";
import { grantedNode, makeRecord } from "../usage/usage-records.ts";
import { quietNode, startConsole, type ConsoleRig } from "../surface/console-rig.ts";
import { PutForwardClock } from "../surface/put-forward-clock.ts";
import { axeFindings, openTab, startBrowser, type Browser, type Tab } from "./browser.ts";

const consolePaths = {
  ...{ nodes: "/", slots: "/slots", accounts: "/accounts", pipeline: "/pipeline", capacity: "/capacity" },
} as const satisfies Record<ConsolePage, string>;
export const consolePages = Object.values(consolePaths);

interface ConsoleVisited extends AsyncDisposable {
  readonly browser: Browser;
  readonly rig: ConsoleRig;
  /** The router's clock. */
  readonly clock: PutForwardClock;
}

export async function startVisitedConsole(details: () => readonly NodeDetail[] = busyFleet): Promise<ConsoleVisited> {
  await using opened = new AsyncDisposableStack();
  const clock = new PutForwardClock();
  const rig = opened.use(await startConsole({ details, clock }));
  const browser = await startBrowser();
  opened.defer(() => browser.close());
  for (const name of ["ACME GmbH", "Globex"]) {
    const { accountId, id } = await rig.portal.newAccount(name, { package: "Pro" });
    await rig.portal.database.pool.query(
      "insert into refusals (account_id, user_id, key_id, hour, code, count) values ($1, $2, $2, date_trunc('hour', now()), 'rate_limit_parallel', 41)",
      [accountId, id],
    );
    await rig.portal.database.pool.query(
      "insert into unanswered_requests values ($1, $2, $3, $3, 'small-24b', 'no_node_available', 503, 7, 1)",
      [uuidv7(systemClock), accountId, id],
    );
  }
  const closing = opened.move();
  return { browser, rig, clock, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

/** Adds a minute with more requests than the fleet has places. */
export async function addBusyMinute({ rig, clock }: ConsoleVisited): Promise<void> {
  const { pool } = rig.portal.database;
  const random = createRandom(1);
  const sinceMs = clock.now() - 600_000;
  const records = Array.from({ length: 1_200 }, (_, index) =>
    makeRecord(random, sinceMs + index * 50, {
      ...{ model: model(index % 4 === 0 ? "small-24b" : "general-4-31b"), promptTokens: 800, completionTokens: 501 },
      ...{ durationMs: 16_000, firstTokenMs: 1_000 },
    }),
  );
  await makeUsageDays(pool, [sinceMs]);
  await commitUsage(
    pool,
    records.map((record) => ({ node: grantedNode, record })),
  );
}

/** Opens a tab and signs in by a link. */
export async function openSignedIn(
  { browser, rig }: ConsoleVisited,
  look: Parameters<typeof openTab>[2] = {},
): Promise<Tab> {
  const tab = await openTab(browser, rig.origin, look);
  await tab.page.goto(rig.link());
  await tab.page.locator(".shell").waitFor();
  return tab;
}

/** Returns the faults of all pages in one combination of theme, language and width, a line each. */
export async function faultyConsolePages(
  visited: ConsoleVisited,
  theme: "light" | "dark",
  language: "de" | "en",
  width: number,
): Promise<string[]> {
  const options = { viewport: { width, height: 900 }, colorScheme: theme };
  await using tab = await openSignedIn(visited, { language, options });
  const faults: string[] = [];
  for (const path of consolePages) {
    await tab.page.goto(path);
    await tab.page.locator(".live-mark i").waitFor();
    faults.push(...(await faultsOf(tab, path)));
  }
  return faults;
}

/** Returns the faults of the current page. */
export async function faultsOf(tab: Tab, path: string): Promise<string[]> {
  const sideways = Number(await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth"));
  const faults = (await axeFindings(tab.page)).map((finding) => `${path} ${finding}`);
  if (sideways > 0) faults.push(`${path} is ${sideways} pixels too wide`);
  tab.check();
  return faults;
}

const model = (name: string) => asId<ModelId>(name);

function slot(name: string, more: Partial<SlotView> = {}): SlotView {
  return {
    name: asId<SlotName>(name),
    models: [model("general-4-31b"), model("small-24b")],
    ...{
      state: SlotState.ACTIVE,
      activeModel: model("general-4-31b"),
      running: 3,
      runningOfRouter: 3,
      inFlight: 3,
      unread: 0,
    },
    ...{ waiting: 0, waiters: [], stateAgeMs: 60_000, oldestRunningMs: 12_000 },
    ...more,
  };
}

const gpu = {
  ...{ index: 0, memoryTotalBytes: 80_000_000_000n, memoryUsedBytes: 61_000_000_000n, utilisation: 0.87 },
  ...{ temperatureCelsius: 71, powerWatts: 300 },
};
const report = {
  ...{
    slots: [],
    maintenance: false,
    admitting: true,
    host: { gpus: [gpu] },
  },
  outbox: { records: 12n, oldestMs: 4_000 },
};

function withSlots(name: string, slots: readonly SlotView[], more: Partial<NodeDetail> = {}): NodeDetail {
  const node = quietNode(name, { report, ...more });
  return { ...node, view: { ...node.view, slots, reportedAtMs: performance.now() } };
}

const past = (agoMs: number, more: Partial<PastSwitch> = {}): PastSwitch => ({
  ...{ model: "small-24b", fromModel: "general-4-31b", failed: false, tookMs: 9_400, drainMs: 5_000, stopMs: 1_000 },
  ...{ memoryMs: 400, startMs: 2_800, probeMs: 200, endedAtMs: performance.now() - agoMs },
  ...more,
});
const history: readonly PastSwitch[] = [
  past(3_000_000),
  past(1_800_000, { model: "general-4-31b", fromModel: "small-24b" }),
  past(600_000, { model: "small-24b", failed: true, tookMs: 0 }),
  past(560_000, { model: "general-4-31b", fromModel: undefined, drainMs: 0, stopMs: 0 }),
];

const failures: readonly EngineFailure[] = [
  {
    ...{ number: 1n, atMs: performance.now() - 40_000, model: model("general-4-31b"), kind: "start" },
    reason: "exit code 1: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    lines: ["Loading weights: 92 %", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."],
  },
];

/** Makes a node in each state, with slots. */
function busyFleet(): readonly NodeDetail[] {
  const draining = slot("b", {
    ...{ state: SlotState.DRAINING_OPEN, nextModel: model("small-24b"), closesInMs: 6_000, waiting: 2 },
    ...{ waiters: [{ model: "small-24b", waiting: 2 }], oldestWaitingMs: 2_400 },
  });
  const starting = slot("c", {
    ...{
      state: SlotState.STARTING,
      running: 0,
      oldestRunningMs: undefined,
      switching: { ageMs: 3_000, phase: "start", usualMs: 12_000 },
    },
  });
  const failed = slot("a", { state: SlotState.FAILED, running: 0, oldestRunningMs: undefined, retryInMs: 8_000 });
  const gone = withSlots("gpu-3", [], { linked: false, linkedAtMs: undefined, dataConnections: 0 });
  const resting = withSlots("gpu-4", [slot("a", { running: 2 })]);
  return [
    withSlots("gpu-1", [slot("a"), draining, starting], {
      histories: new Map([[asId<SlotName>("a"), history]]),
      report: { ...report, host: { gpus: [gpu, { ...gpu, index: 1, temperatureCelsius: 91 }] } },
    }),
    withSlots("gpu-2", [failed], { failures: new Map([[asId<SlotName>("a"), failures]]) }),
    { ...gone, view: { ...gone.view, node: asId<NodeId>("gpu-3"), reachable: false } },
    { ...resting, view: { ...resting.view, maintenance: true } },
  ];
}
