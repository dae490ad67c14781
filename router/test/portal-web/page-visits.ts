/** Visits every page as each role, and checks it in every theme, language and width. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { builtPages } from "../../src/surface/portal/portal-pages.ts";
import { startPortal, type Person, type PortalRig } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser, type Browser } from "./browser.ts";
import { fillAccount, ShiftedClock } from "./busy-account.ts";
import { busyNodes } from "./busy-nodes.ts";
import { someChanges } from "./some-changes.ts";

const openPages = [
  ...["/", "/keys", "/usage", "/models", "/chat", "/package", "/start", "/help"],
  ...["/account", "/notices", "/changes"],
];
/** For Owners and Admins. */
const managingPages = ["/users", "/audit"];

/** The most calls of a page itself. The frame asks once, for all pages, who is signed in and how many notices are unread. */
const callsMax = 3;
const frameCalls = ["GET /api/session", "GET /api/notices"];

export interface Visit {
  readonly cookie: string;
  readonly language: "de" | "en";
  readonly theme: "light" | "dark";
  readonly width: number;
}

/** A browser, and a portal with a person of each role in an account that has been used for a while. */
export interface Visited extends AsyncDisposable {
  readonly browser: Browser;
  readonly portal: PortalRig;
  readonly people: Readonly<Record<"owner" | "admin" | "member", Person>>;
}

export async function startVisited(): Promise<Visited> {
  const clock = new ShiftedClock();
  await using opened = new AsyncDisposableStack();
  const portal = opened.use(
    await startPortal({ clock, parts: () => ({ nodes: () => busyNodes, changes: () => someChanges }) }),
  );
  const browser = await startBrowser();
  opened.defer(() => browser.close());
  const owner = await fillAccount(portal, clock);
  const people = { owner, admin: await portal.newUser(owner, "admin"), member: await portal.newUser(owner, "member") };
  const closing = opened.move();
  return { browser, portal, people, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

/** The pages that a role may use. */
export function pagesOf(role: keyof Visited["people"]): readonly string[] {
  return role === "member" ? openPages : [...openPages, ...managingPages];
}

/** Returns the faults of the pages, a line each. */
export async function faultyPages(
  browser: Browser,
  portal: PortalRig,
  paths: readonly string[],
  { cookie, language, theme, width }: Visit,
): Promise<string[]> {
  const faults: string[] = [];
  const options = { viewport: { width, height: 900 }, colorScheme: theme };
  await using tab = await openTab(browser, portal.origin, { cookie, language, options });
  for (const path of paths) {
    await tab.page.goto(path);
    await tab.page.locator("main h1").waitFor();
    await tab.settled();
    const calls = tab.asked().filter((call) => !frameCalls.includes(call));
    if (calls.length > callsMax) faults.push(`${path} asks ${calls.join(", ")}`);
    const sideways = Number(await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth"));
    if (sideways > 0) faults.push(`${path} is ${sideways} pixels too wide`);
    faults.push(...(await axeFindings(tab.page)).map((finding) => `${path} ${finding}`));
    tab.check();
  }
  return faults;
}

/** Kilobytes, compressed, of everything that each page fetches until it is shown, apart from the API's answers. */
export async function pageWeights(
  browser: Browser,
  portal: PortalRig,
  paths: readonly string[],
  cookie?: string,
): Promise<ReadonlyMap<string, number>> {
  await using tab = await openTab(browser, portal.origin, cookie === undefined ? {} : { cookie });
  let fetched = new Set<string>();
  tab.page.on("response", (response) => fetched.add(new URL(response.url()).pathname));
  const weights = new Map<string, number>();
  for (const path of paths) {
    fetched = new Set();
    await tab.page.goto(path);
    await tab.page.locator("main h1").waitFor();
    await tab.settled();
    const names = [...fetched].filter((name) => !name.startsWith("/api/"));
    const files = names.map((name) => readFileSync(join(builtPages, name === path ? "/index.html" : name)));
    weights.set(path, files.reduce((sum, file) => sum + gzipSync(file, { level: 9 }).length, 0) / 1_000);
  }
  return weights;
}
