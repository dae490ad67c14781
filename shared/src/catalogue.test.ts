import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { factorAt, factorEntryAt, isCallable, mayHost, parseCatalogue, rulesOf } from "./catalogue.ts";
import { asId, type ModelId, type NodeId } from "./ids.ts";

const entry = (more: string) =>
  `models:\n  - id: m\n    category: language\n    status: Beta\n    contextTokens: 100\n${more}`;
const factors =
  '    factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1.5 }, { validFrom: "2026-06-01T00:00:00+02:00", factor: 2 }]\n';

test("a factor applies from its instant on, and the first one from the beginning [S20.2]", () => {
  const model = parseCatalogue(entry(factors)).catalogue!.get(asId<ModelId>("m"))!;
  expect(factorAt(model, 0)).toBe(1500n);
  expect(factorAt(model, Date.parse("2026-05-31T21:59:59.999Z"))).toBe(1500n);
  expect(factorAt(model, Date.parse("2026-05-31T22:00:00Z"))).toBe(2000n);
});

test("a factor is provisional only if the catalogue marks it", () => {
  const text = entry(factors.replace("factor: 1.5 }", "factor: 1.5, provisional: true }"));
  const model = parseCatalogue(text).catalogue!.get(asId<ModelId>("m"))!;
  expect(factorEntryAt(model, Date.parse("2026-05-01T00:00:00Z"))).toMatchObject({
    factor: 1500n,
    isProvisional: true,
  });
  expect(factorEntryAt(model, Date.parse("2026-07-01T00:00:00Z"))).not.toHaveProperty("isProvisional");
  expect(parseCatalogue(text.replace("true", "perhaps")).mistakes[0]!.message).toMatch(/provisional/);
});

test("a catalogue may be a bare list", () => {
  const list = entry(factors).split("\n").slice(1).join("\n");
  expect(parseCatalogue(list).catalogue!.size).toBe(1);
});

test("a model may list its nodes: others may not host it, and agents do not get the list", () => {
  const catalogue = parseCatalogue(entry(`${factors}    nodes: [gpu-1, gpu-2.example]\n`)).catalogue!;
  const [listed, free] = [asId<ModelId>("m"), asId<ModelId>("unknown")];
  const believed = (node: string, model = listed) => mayHost(catalogue, asId<NodeId>(node), model);
  expect(["gpu-1", "gpu-2.example", "gpu-3", "GPU-1", ""].map((node) => believed(node))).toEqual([
    ...[true, true],
    ...[false, false, false],
  ]);
  expect(believed("gpu-3", free)).toBe(true);
  expect(mayHost(parseCatalogue(entry(factors)).catalogue!, asId<NodeId>("gpu-3"), listed)).toBe(true);
  expect(rulesOf(catalogue.get(listed)!)).not.toHaveProperty("nodes");
});

test("a model is callable unless it is only announced [S2.4]", () => {
  const isCallableAs = (status: string) =>
    isCallable(parseCatalogue(entry(factors).replace("Beta", status)).catalogue!.get(asId<ModelId>("m"))!);
  expect(isCallableAs("Demnächst")).toBe(false);
  expect(["Beta", "Verfügbar", "Auslaufend"].map(isCallableAs)).toEqual([true, true, true]);
});

const mistakes: [name: string, text: string, message: RegExp][] = [
  ["a factor with four places", entry(factors.replace("1.5", "1.2345")), /at most three decimal places/],
  ["a factor that totals could overflow with", entry(factors.replace("1.5", "1000.001")), /larger than 1000$/],
  ["a window that exceeds the largest countable usage", entry(factors).replace("100\n", "4194305\n"), /contextTokens/],
  ["a malformed instant", entry(factors.replace("2026-01-01T00:00:00+01:00", "soon")), /is not an instant/],
  [
    "a default effort that is not accepted",
    entry(`${factors}    reasoning: { mode: optional, efforts: [low], default: high }\n`),
    /not among/,
  ],
  ["an embedding model without its rules", entry(factors).replace("language", "embeddings"), /needs `embeddings`/],
  ["a model listed twice", entry(factors) + entry(factors).split("\n").slice(1).join("\n"), /listed twice/],
  ["a malformed node name", entry(`${factors}    nodes: [gpu-1, "gpu 2"]\n`), /nodes/],
  ["a list of no nodes", entry(`${factors}    nodes: []\n`), /nodes/],
  ["an unknown key", entry(`${factors}    reasonig: {}\n`), /did you mean "reasoning"/],
];
test.each(mistakes)("%s refuses the whole catalogue", (_name, text, message) => {
  const result = parseCatalogue(text);
  expect(result.catalogue).toBeUndefined();
  expect(result.mistakes.map((m) => m.message).join()).toMatch(message);
});

test("the demonstration's catalogue is valid", () => {
  const file = join(import.meta.dirname, "../../deploy/demo/catalogue.yaml");
  expect(parseCatalogue(readFileSync(file, "utf8")).mistakes).toEqual([]);
});

const terms = (more = "") =>
  `{ validFrom: "2026-01-01T00:00:00+01:00", price: 7.5, credits: 5000000, requestsPerMinute: 30, parallel: 5, support: false${more} }`;

test("packages are read with their terms, oldest first", () => {
  const id = "01a20967-d512-7987-9579-bf46712babeb";
  const later = terms(", trialDays: 14").replace("2026-01-01", "2025-01-01").replace("7.5", "19.99");
  const text = `${entry(factors)}packages:\n  - { name: Solo, trial: true, terms: [${terms()}, ${later}] }\n  - { name: Own GPU, accounts: [${id}], terms: [${terms()}] }\n`;
  expect(parseCatalogue(text).packages).toMatchObject([
    {
      ...{ name: "Solo", trial: true },
      versions: [
        { priceCents: 1_999, trialDays: 14, validFromMs: Date.parse("2025-01-01T00:00:00+01:00") },
        {
          priceCents: 750,
          creditsPerMonth: 5_000_000n,
          requestsPerMinute: 30,
          parallelRequests: 5,
          emailSupport: false,
          trialDays: 30,
        },
      ],
    },
    { name: "Own GPU", trial: false, accounts: [id] },
  ]);
});

test.each([
  ["{ name: Solo, terms: [] }", "terms"],
  [`{ name: Solo, term: [], terms: [${terms()}] }`, 'unknown key "packages.1.term"'],
  [`{ name: Solo, terms: [${terms(", discount: 1")}] }`, "discount"],
  [`{ name: Solo, terms: [${terms(", trialDays: 0")}] }`, "trialDays"],
  [`{ name: Solo, terms: [${terms().replace("7.5", "0")}] }`, "price"],
  [`{ name: Solo, terms: [${terms().replace("7.5", "7.505")}] }`, "7.505 EUR is not a whole number of cents"],
  [`{ name: Solo, terms: [${terms().replace("2026-01-01T00:00:00+01:00", "soon")}] }`, '"soon" is not an instant'],
  [`{ name: Solo, terms: [${terms()}, ${terms()}] }`, "other terms are valid from the same instant"],
  [`{ name: pro, terms: [${terms()}] }`, "the package pro is listed twice"],
  [`{ name: Solo, trial: true, terms: [${terms()}] }`, "only one package may have"],
  [`{ name: Solo, accounts: [ACME], terms: [${terms()}] }`, "accounts"],
])("a package %s is refused with its line", (mistake, message) => {
  const text = `${entry(factors)}packages:\n  - { name: Pro, trial: true, terms: [${terms()}] }\n  - ${mistake}\n`;
  const { mistakes } = parseCatalogue(text);
  expect(mistakes).toMatchObject([{ line: 9 }]);
  expect(mistakes[0]!.message).toContain(message);
});

test("the trial's package must be open to every account", () => {
  const account = "01a20967-d512-7987-9579-bf46712babeb";
  const text = `${entry(factors)}packages:\n  - { name: Pro, trial: true, accounts: [${account}], terms: [${terms()}] }\n`;
  expect(parseCatalogue(text).mistakes).toMatchObject([{ line: 8 }]);
});

test("the catalogue sets the estimated tokens of a byte and of an image, within bounds", () => {
  const read = (ratio: string, image: string) =>
    parseCatalogue(
      entry(
        `${factors}    tokensPerByte: ${ratio}\n    images: { max: 4, formats: [png], tokensPerImage: ${image} }\n`,
      ),
    );
  const { tokensPerByte, images } = rulesOf(read("0.3", "280").catalogue!.get(asId<ModelId>("m"))!);
  expect([tokensPerByte, images!.tokensPerImage]).toEqual([0.3, 280]);
  for (const wrong of ["0", "-1", "6.1", "much"])
    expect(read(wrong, "280").mistakes[0]!.message).toMatch(/tokensPerByte/);
  for (const wrong of ["0", "16385", "1.5"]) expect(read("0.3", wrong).mistakes[0]!.message).toMatch(/tokensPerImage/);
});

test("a model gives at most 8 answers to a request, unless its entry has another maximum [S4.10]", () => {
  const answersMax = (more: string) =>
    parseCatalogue(entry(`${factors}${more}`)).catalogue?.get(asId<ModelId>("m"))!.answersMax;
  expect([answersMax(""), answersMax("    answersMax: 2\n"), answersMax("    answersMax: 128\n")]).toEqual([8, 2, 128]);
  for (const wrong of ["0", "129", "1.5", "many"])
    expect(parseCatalogue(entry(`${factors}    answersMax: ${wrong}\n`)).mistakes[0]!.message).toMatch(/answersMax/);
});
