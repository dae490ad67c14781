/** Tests a changed catalogue: charges, notices, and the effect of a broken file on a running router and on a start. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { Cluster, until } from "../cluster/cluster.ts";
import { joinAsOwner, type PortalOwner } from "../cluster/portal-owner.ts";
import { catalogueOf, simNodes } from "../cluster/sim-node.ts";
import { dumpUsage } from "../cluster/usage-dump.ts";

const model = "chat-a";
const newYear = "2099-01-01T00:00:00+01:00";
let cluster: Cluster;
let ada: PortalOwner;

beforeAll(async () => {
  cluster = await Cluster.start(simNodes([model], ["n1"]));
  ada = await joinAsOwner(cluster);
  await cluster.weiche("credits", "evaluate"); // later changes of the catalogue cause notices
}, 90_000);
afterAll(() => cluster[Symbol.asyncDispose]());

/** Writes a catalogue. Resolves once the router has logged `saying` this many times. */
async function reload(text: string, saying: string, times = 1): Promise<void> {
  writeFileSync(join(cluster.directory, "catalogue.yaml"), text);
  cluster.router.kill("SIGHUP");
  const said = () => cluster.router.output.filter((line) => line.includes(saying)).length;
  await until(`the router to log: ${saying}`, () => said() >= times);
}

const withFactors = (...factors: readonly object[]) =>
  stringify(catalogueOf(model).map((one) => ({ ...one, factors })));

const terms = { validFrom: newYear, price: 1, credits: 1, requestsPerMinute: 1, parallel: 1, support: false };
const withPackage = stringify({ models: catalogueOf(model), packages: [{ name: "Solo", terms: [terms] }] });

const changedFactors = [
  { validFrom: "2026-01-01T00:00:00+01:00", factor: 2.5 },
  { validFrom: newYear, factor: 3 },
];

const ask = (tokens: number, signal?: AbortSignal) =>
  ada.send(
    "/chat",
    {
      ...{ model, max_tokens: tokens, stream: true, stream_options: { include_usage: true } },
      messages: [{ role: "user", content: `sim:tokens=${tokens} Hi` }],
    },
    signal,
  );

/** Returns the cost per token, from the usage of an answer. */
async function factorOfAnswer(tokens: number): Promise<number> {
  const text = await (await ask(tokens)).text();
  const done = JSON.parse(/event: done\ndata: (.*)\n/.exec(text)![1]!) as Record<string, number>;
  return Number(done["credits"]) / (done["promptTokens"]! + done["completionTokens"]!);
}

const factorShown = async () => (await ada.get<{ items: object[] }>("/models")).items[0];

test("a request is charged with the factor at its acceptance, and the next request with the changed factor [S20.2]", async () => {
  const stop = new AbortController();
  const reader = (await ask(20_000, stop.signal)).body!.getReader();
  for (let seen = ""; !seen.includes('"content"');) seen += Buffer.from((await reader.read()).value!).toString();
  await reload(withFactors(...changedFactors), "catalogue read again");
  expect(await factorShown()).toMatchObject({
    factor: "2.500",
    comingFactors: [{ validFrom: "2098-12-31T23:00:00Z", factor: "3.000" }],
  });
  expect(await factorOfAnswer(10)).toBe(2.5);
  stop.abort();
  await until("both requests to be recorded", async () => (await dumpUsage(cluster)).length === 2);
  const tokens = Object.fromEntries(
    (await dumpUsage(cluster)).map((one) => [one.outcome, one.promptTokens + one.completionTokens]),
  );
  const { totals } = await ada.get<{ totals: { credits: string } }>("/usage");
  expect(Number(totals.credits)).toBe(tokens["client-ended"]! * 1 + tokens["finished"]! * 2.5);
}, 60_000);

test("the account's users get one notice about the changed factor and one about the future factor", async () => {
  for (let round = 0; round < 2; round++) await cluster.weiche("credits", "evaluate");
  expect(await ada.get("/notices")).toMatchObject({
    total: 1,
    unread: 1,
    items: [
      {
        kind: "model-factor",
        facts: {
          ...{ model, from: "1.000", to: "2.500" },
          coming: [{ validFrom: "2098-12-31T23:00:00Z", factor: "3.000" }],
        },
      },
    ],
  });
});

test("a new changelog entry about a model causes one notice", async () => {
  const text = { de: "Der Faktor steigt zum Jahreswechsel.", en: "The factor goes up with the new year." };
  const models = catalogueOf(model).map((one) => ({ ...one, factors: changedFactors }));
  await reload(stringify({ models, changes: [{ at: newYear, text, models: [model] }] }), "catalogue read again", 2);
  for (let round = 0; round < 2; round++) await cluster.weiche("credits", "evaluate");
  expect(await ada.get("/notices")).toMatchObject({
    total: 2,
    items: [{ kind: "model-change", facts: { at: "2098-12-31T23:00:00Z", text, news: [] } }, { kind: "model-factor" }],
  });
});

test.each([
  ["no YAML", "- id: {"],
  ["a model without a factor", withFactors()],
  ["packages without one that an account has", withPackage],
  ["a factor below zero", withFactors({ validFrom: newYear, factor: -1 })],
])("a broken file is refused and the previous catalogue stays: %s", async (_name, text) => {
  const refused = "the new catalogue is wrong; the previous one stays in use";
  const before = cluster.router.output.filter((line) => line.includes(refused)).length;
  await reload(text, refused, before + 1);
  await expect(cluster.weiche("catalogue", "reload")).rejects.toThrow(/catalogue\.yaml/);
  expect(await factorShown()).toMatchObject({ factor: "2.500" });
  expect(await factorOfAnswer(5)).toBe(2.5);
  await cluster.weiche("credits", "evaluate");
  expect(await ada.get("/notices")).toMatchObject({ total: 2 });
});

test("a router refuses to start without an account's package, names it, and starts once it is defined", async () => {
  const file = join(cluster.directory, "catalogue.yaml");
  writeFileSync(file, withPackage);
  await cluster.router.stop();
  const failure = await cluster.startRouter().then(
    () => "it started",
    (error: Error) => error.message,
  );
  const lines = failure.split("\n").filter((line) => !line.startsWith("{"));
  expect(lines).toEqual([
    expect.stringContaining("ended (1):"),
    `weiche-router: ${file}: Pro is not listed, but booked by an account: list it until the account has another package`,
  ]);
  writeFileSync(file, withFactors(...changedFactors));
  await cluster.startRouter();
  expect(await ada.get("/package")).toMatchObject({ subscription: { package: "Pro", state: "active" } });
}, 60_000);
