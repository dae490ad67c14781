/**
 * Measures the portal's pages in Chromium against their budgets (`npm run bench:portal [rounds]`). A real router with its
 * database has an account of 25 people with 500 keys and 10,000 rows of usage. From the navigation on, it measures the
 * largest paint of each page (LCP) with a cold cache, the first row of Keys and Usage, also after a search or a new order,
 * and the first and last byte of the CSV of all rows. Browser and router share the machine.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { openTab, startBrowser, type Page } from "@weiche/router/test/portal-web/browser.ts";
import { Cluster } from "../e2e/cluster/cluster.ts";
import { joinAsOwner, type PortalOwner } from "../e2e/cluster/portal-owner.ts";
import { describeMachine, quantiles, round } from "../e2e/cluster/measurement.ts";
import { writeResult } from "./load/result-files.ts";
import { connect } from "../e2e/cluster/usage-dump.ts";

const rounds = Number(process.argv[2] ?? 7);
const budgetMs = 1_000;
const people = 25;
const keysEach = 20;
const daysOfUse = 20;
const pages = [
  ...["/", "/keys", "/usage", "/models", "/chat", "/package", "/users", "/audit", "/start", "/help", "/account"],
  ...["/notices", "/changes"],
];

const firstRowText = "(document.querySelector('main tbody tr')?.textContent ?? '')";

const machine = describeMachine();
await using opened = new AsyncDisposableStack();
const cluster = opened.use(
  await Cluster.start({
    catalogue: parse(readFileSync(join(import.meta.dirname, "../deploy/catalogue.yaml"), "utf8")),
    agents: {},
  }),
);
const owner = await joinAsOwner(cluster);
await fill();
const browser = await startBrowser();
opened.defer(() => browser.close());
const origin = `http://${cluster.router.listen["portal"]}`;

const times = new Map<string, number[]>();
const note = (what: string, ms: number) => times.set(what, [...(times.get(what) ?? []), ms]);
for (const path of pages) await visit(path); // the router compresses its files and the database plans its statements
times.clear();
for (let nth = 0; nth < rounds; nth++) {
  await visit(undefined);
  for (const path of pages) await visit(path);
  await measureList("/keys?sort=name&order=asc", "keys", "Name", "0077");
  await measureList("/usage?by=key&days=30&sort=requests&order=desc", "usage", "Requests");
  await measureCsv(owner);
}

const rows = [...times].map(([what, values]) => ({ what, ...quantiles(values), ...budgetOf(what) }));
const missed = rows.filter(({ p50, budgetMs: most }) => most !== undefined && p50 > most);
writeResult("portal", machine, { rounds, keys: people * keysEach, usageRows: people * keysEach * daysOfUse, rows }, [
  `${rounds} rounds; an account of ${people} people with ${people * keysEach} keys and ${people * keysEach * daysOfUse} rows of usage. Times in ms from the navigation, or from the click:`,
  "",
  "| | p50 | max | budget |",
  "|---|---|---|---|",
  ...rows.map(({ what, p50, max, budgetMs: most }) => `| ${what} | ${p50} | ${max} | ${most ?? "–"} |`),
  "",
  `Goal: each median within its budget: ${missed.length === 0 ? "met" : `missed by ${missed.map(({ what }) => what).join(", ")}`}.`,
]);
if (missed.length > 0) process.exitCode = 1;

function budgetOf(what: string): { readonly budgetMs?: number } {
  return what.startsWith("CSV") || what.includes("search") ? {} : { budgetMs };
}

/** Visits a page with a cold cache, or the sign-in page if `path` is undefined, and notes its largest paint. */
async function visit(path: string | undefined): Promise<void> {
  await using tab = await openTab(browser, origin, path === undefined ? {} : { cookie: owner.cookie });
  await tab.page.goto(path ?? "/");
  await tab.page.locator("main h1").waitFor();
  await tab.settled();
  note(path === undefined ? "LCP of the sign-in" : `LCP of ${path}`, await largestPaint(tab.page));
  tab.check();
}

async function largestPaint(page: Page): Promise<number> {
  const ms = await page.evaluate(`new Promise((resolve) => {
    new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
      .observe({ type: "largest-contentful-paint", buffered: true });
  })`);
  return round(Number(ms));
}

/** Measures the first row of a long list, then in another order, then of a search if the list has one. */
async function measureList(path: string, name: string, sortBy: string, search?: string): Promise<void> {
  await using tab = await openTab(browser, origin, { cookie: owner.cookie });
  const { page } = tab;
  await page.goto(path);
  note(`first row of ${name}`, await firstRow(page, ""));
  const before = await textOfFirstRow(page);
  const clicked = await nowOf(page);
  await page.getByRole("button", { name: sortBy, exact: true }).click();
  note(`first row of ${name} in another order`, (await firstRow(page, before)) - clicked);
  if (search === undefined) return;
  const ordered = await textOfFirstRow(page);
  const typed = await nowOf(page);
  await page.getByRole("searchbox").fill(search);
  note(`first row of a search of ${name}, with 250 ms for a pause in typing`, (await firstRow(page, ordered)) - typed);
}

async function textOfFirstRow(page: Page): Promise<string> {
  return String(await page.evaluate(firstRowText));
}

async function nowOf(page: Page): Promise<number> {
  return Number(await page.evaluate("performance.now()"));
}

/** Returns the page's time at which a first row other than `before` is shown. */
async function firstRow(page: Page, before: string): Promise<number> {
  const ms = await page.evaluate(`new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("no other row came within 20 s")), 20_000);
    const look = () => {
      const text = ${firstRowText};
      if (text !== "" && text !== ${JSON.stringify(before)}) resolve(performance.now());
      else requestAnimationFrame(look);
    };
    look();
  })`);
  return round(Number(ms));
}

async function measureCsv({ cookie }: PortalOwner): Promise<void> {
  const startMs = performance.now();
  const answer = await fetch(`${origin}/api/usage.csv?by=day,model,key,user&from=2020-01-01&to=2099-12-31`, {
    headers: { cookie },
  });
  if (answer.status !== 200) throw new Error(`the CSV was answered with ${answer.status}`);
  let lines = 0;
  let firstMs: number | undefined;
  for await (const bytes of answer.body!) {
    firstMs ??= performance.now() - startMs;
    for (const byte of bytes) if (byte === 10) lines++;
  }
  if (lines !== people * keysEach * daysOfUse + 1) throw new Error(`the CSV has ${lines} lines`);
  note("CSV of all usage, first byte", round(firstMs!));
  note("CSV of all usage, whole", round(performance.now() - startMs));
}

async function fill(): Promise<void> {
  await using client = await connect(cluster);
  const account = "(select id from accounts limit 1)";
  await client.query(
    `insert into users (id, account_id, email, role, created_at)
     select gen_random_uuid(), ${account}, 'person' || n || '@example.com', 'member', now() from generate_series(2, $1::int) n`,
    [people],
  );
  await client.query(
    `insert into api_keys (id, account_id, user_id, hash, last_four, name, created_at)
     select gen_random_uuid(), ${account}, u.id, encode(sha256((u.id::text || n)::bytea), 'hex'), lpad(n::text, 4, '0'),
       'key ' || lpad(row_number() over (order by u.id, n)::text, 4, '0'), now() - interval '30 days'
     from users u, generate_series(1, $1::int) n`,
    [keysEach],
  );
  await client.query(
    `insert into usage_days
     select ${account}, current_date - d, '-infinity', k.user_id, k.id, (array['small-24b', 'coder-next', 'general-4-31b'])[1 + d % 3],
       1 + (random() * 50)::int, 90000, 10000, 100000000
     from api_keys k, generate_series(0, $1::int - 1) d`,
    [daysOfUse],
  );
  await client.query("analyze");
}
