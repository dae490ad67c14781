/** Visits every page as each role, and checks it in every theme, language and width. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { builtPortal } from "../../src/surface/server/built-pages.ts";
import { startPortal, type Person, type PortalRig } from "../surface/portal-rig.ts";
import { axeFindings, openTab, startBrowser, type Browser, type Locator, type Page, type Tab } from "./browser.ts";
import { fillAccount, ShiftedClock } from "./busy-account.ts";
import { busyNodes } from "./busy-nodes.ts";
import { someChanges } from "./some-changes.ts";

const openPages = [
  ...["/", "/keys", "/usage", "/requests", "/models", "/chat", "/package", "/start", "/help"],
  ...["/account", "/notices", "/changes"],
];
/** Pages without a sign-in. The two links with a token have expired. */
const token = "a".repeat(43);
export const entrances = [
  "/",
  "/forgotten",
  "/registration",
  "/invitation",
  `/invitation#${token}`,
  `/reset#${token}`,
  `/confirm#${token}`,
];
/** Pages for Owners and Admins. */
const managingPages = ["/users", "/audit"];
/** Pages for Owners. */
const ownersPages = ["/invoices", "/settings"];

const frameCalls = ["GET /api/session", "GET /api/notices"];

interface Visit {
  /** If undefined, nobody is signed in. */
  readonly cookie?: string;
  readonly language: "de" | "en";
  readonly theme: "light" | "dark";
  readonly width: number;
}

type PersonOfEachRole = Readonly<Record<"owner" | "admin" | "member", Person>>;

/** Opens a browser and a portal with two accounts. */
interface Visited extends AsyncDisposable {
  readonly browser: Browser;
  readonly portal: PortalRig;
  /** People of a used account. */
  readonly people: PersonOfEachRole;
  /** People of an unused account. */
  readonly newcomers: PersonOfEachRole;
}

export async function startVisited(): Promise<Visited> {
  const clock = new ShiftedClock();
  await using opened = new AsyncDisposableStack();
  const portal = opened.use(
    await startPortal({
      clock,
      mail: { send: () => Promise.resolve(true) },
      parts: () => ({ nodes: () => busyNodes, changes: () => someChanges }),
    }),
  );
  const browser = await startBrowser();
  opened.defer(() => browser.close());
  const owner = await fillAccount(portal, clock);
  const withOthers = async (one: Person): Promise<PersonOfEachRole> => ({
    owner: one,
    admin: await portal.newUser(one, "admin"),
    member: await portal.newUser(one, "member"),
  });
  const people = await withOthers(owner);
  const newcomers = await withOthers(await portal.newAccount("Globex GmbH"));
  const closing = opened.move();
  return { browser, portal, people, newcomers, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

/** Returns the pages that a role may use. */
export function pagesOf(role: keyof PersonOfEachRole): readonly string[] {
  if (role === "member") return openPages;
  return [...openPages, ...managingPages, ...(role === "owner" ? ownersPages : [])];
}

/** Answers to a page instead of its data: none, a failure, a refusal. */
type Trouble = "loading" | "failing" | "forbidden";

const answers = {
  failing: { status: 500, message: "internal error", code: "internal" },
  forbidden: { status: 403, message: "your role does not allow this", code: "403" },
} as const;
const failedRequest = "01a20725-2205-7ae0-916b-6ee7e6a3dde7";

/**
 * Returns the faults of the pages, a line each. The first is opened by its address, the others as their links do it; for those
 * who are not signed in, each by its address, which may have a token.
 */
export async function faultyPages(
  browser: Browser,
  portal: PortalRig,
  [first, ...others]: readonly string[],
  { cookie, language, theme, width, trouble }: Visit & { readonly trouble?: Trouble },
): Promise<string[]> {
  const options = { viewport: { width, height: 900 }, colorScheme: theme };
  await using tab = await openTab(browser, portal.origin, { language, options, ...(cookie ? { cookie } : {}) });
  if (trouble) await cause(trouble, tab.page);
  await open(tab.page, first!);
  const faults = await faultsOf(tab, first!, trouble);
  for (const path of others) {
    if (cookie) await follow(tab.page, path);
    else await open(tab.page, path);
    faults.push(...(await faultsOf(tab, path, trouble)));
  }
  return faults;
}

/** Makes every later API call end this way, except the call for the session. */
async function cause(trouble: Trouble, page: Page): Promise<void> {
  await page.route(
    ({ pathname }) => pathname.startsWith("/api/") && pathname !== "/api/session",
    (route) => {
      if (trouble === "loading") return;
      const { status, ...error } = answers[trouble];
      return route.fulfill({ status, headers: { "x-request-id": failedRequest }, json: { error } });
    },
  );
}

/** Opens a page by its address. */
async function open(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await page.locator("main h1").waitFor();
}

/** Goes to a page without reloading the application. */
async function follow(page: Page, path: string): Promise<void> {
  await page.evaluate(`new Promise((done) => {
    const before = document.title;
    const look = () => (document.title === before ? requestAnimationFrame(look) : done());
    history.pushState(null, "", ${JSON.stringify(path)});
    look();
  })`);
}

async function faultsOf(tab: Tab, path: string, trouble: Trouble | undefined): Promise<string[]> {
  const faults: string[] = [];
  if (trouble === "loading") await tab.page.locator(".skeleton").first().waitFor();
  else await tab.settled();
  if (trouble === "failing" && !(await comes(tab.page.getByRole("alert").getByText(failedRequest))))
    faults.push(`${path} does not tell the request that failed`);
  if (trouble === "forbidden" && !(await comes(tab.page.getByRole("alert"))))
    faults.push(`${path} does not tell that it was refused`);
  const sideways = Number(await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth"));
  if (sideways > 0) faults.push(`${path} is ${sideways} pixels too wide`);
  faults.push(...(await axeFindings(tab.page)).map((finding) => `${path} ${finding}`));
  tab.check();
  return faults;
}

function comes(one: Locator): Promise<boolean> {
  return one
    .first()
    .waitFor()
    .then(
      () => true,
      () => false,
    );
}

/** Files and calls that a page fetches when it is opened by its address. */
interface Fetched {
  /** Compressed kilobytes of all files, without the API's answers. */
  readonly weight: number;
  /** The page's own calls, without the frame's, which fetches the session and the unread notices once. */
  readonly calls: readonly string[];
}

export async function fetchedByPages(
  browser: Browser,
  portal: PortalRig,
  paths: readonly string[],
  cookie?: string,
): Promise<ReadonlyMap<string, Fetched>> {
  await using tab = await openTab(browser, portal.origin, cookie === undefined ? {} : { cookie });
  let fetched = new Set<string>();
  tab.page.on("response", (response) => fetched.add(new URL(response.url()).pathname));
  const pages = new Map<string, Fetched>();
  for (const path of paths) {
    fetched = new Set();
    await open(tab.page, path);
    await tab.settled();
    const names = [...fetched].filter((name) => !name.startsWith("/api/"));
    const files = names.map((name) => readFileSync(join(builtPortal, name === path ? "/index.html" : name)));
    const weight = files.reduce((sum, file) => sum + gzipSync(file, { level: 9 }).length, 0) / 1_000;
    pages.set(path, { weight, calls: tab.asked().filter((call) => !frameCalls.includes(call)) });
    tab.check();
  }
  return pages;
}
