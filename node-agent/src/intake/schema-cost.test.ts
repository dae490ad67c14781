import { ApiError } from "@weiche/shared/errors.ts";
import { expect, test } from "vitest";
import { costlySchemas, record } from "../../test/exchange/costly-schemas.ts";
import { usualSchemas, usualTools } from "../../test/exchange/usual-schemas.ts";
import { schemaBounds } from "../engines/dialects/schema-bounds.ts";
import { boundSchemas } from "./schema-cost.ts";

const all = ["llama-server", "openai", "vllm"] as const;
const answer = (schema: unknown) => [{ of: "answer", schema, at: "schema" } as const];

test.each(costlySchemas)(
  "$name costs every dialect's engines too much, and the error names the place [D10]",
  ({ schema, path }) => {
    for (const dialect of all)
      expect(() => boundSchemas(answer(schema), schemaBounds[dialect])).toThrow(
        expect.objectContaining({ kind: "invalid_request", param: expect.stringMatching(/^schema/) }) as Error,
      );
    const param = path === undefined ? "schema" : `schema.${path}`;
    expect(() => boundSchemas(answer(schema), schemaBounds["llama-server"])).toThrow(
      expect.objectContaining({ param }) as Error,
    );
  },
);

test.each(usualSchemas)("$name is accepted for every dialect [D10]", ({ schema }) => {
  for (const dialect of all) {
    const { sizeMax, choicesMax } = schemaBounds[dialect];
    const { size, choices } = boundSchemas(answer(schema), schemaBounds[dialect]);
    expect([size <= sizeMax, choices <= choicesMax]).toEqual([true, true]);
  }
});

test("128 tools with 20 properties each are accepted together, and 1,000 are not", () => {
  const tools = usualTools.map(({ schema }, index) => ({ of: "tool", schema, at: `tools[${index}]` }) as const);
  for (const dialect of all) boundSchemas(tools, schemaBounds[dialect]);
  const thousand = Array.from({ length: 1_000 }, (_, index) => ({
    ...tools[index % tools.length]!,
    at: `tools[${index}]`,
  }));
  expect(() => boundSchemas(thousand, schemaBounds.vllm)).toThrow(
    expect.objectContaining({ param: expect.stringMatching(/^tools\[\d{3}\]/) }) as Error,
  );
});

test("values of an enum that llama-server does not merge count one by one", () => {
  const of = (kind: "tool" | "answer", values: unknown[]) => [{ of: kind, schema: { enum: values }, at: "schema" }];
  const words = Array.from({ length: 200 }, (_, index) => `word ${index}`);
  const { choices } = boundSchemas(of("answer", words), schemaBounds["llama-server"]);
  expect(choices).toBeLessThan(20);
  for (const [kind, values] of [
    ["tool", words],
    ["answer", words.map((value) => `"${value}"`)],
    ["answer", words.map((value) => [value])],
  ] as const) {
    expect(() => boundSchemas(of(kind, [...values]), schemaBounds["llama-server"])).toThrow("at most 48 ways");
    boundSchemas(of(kind, [...values]), schemaBounds.openai);
  }
});

test("vLLM gets no pattern that its compiler fails on: one that repeats something more than 128 times", () => {
  const counting = (most: number) => ({ properties: { code: { type: "string", pattern: `^[a-z]{1,${most}}$` } } });
  const tool = (isOptional: boolean) => ({ of: "tool", schema: counting(129), at: "schema", isOptional }) as const;
  const refusal = expect.objectContaining({
    param: "schema.properties.code.pattern",
    message: expect.stringContaining("repeats nothing more than 128 times") as string,
  }) as Error;
  expect(() => boundSchemas(answer(counting(129)), schemaBounds.vllm)).toThrow(refusal);
  expect(() => boundSchemas([tool(false)], schemaBounds.vllm)).toThrow(refusal);
  boundSchemas(answer(counting(128)), schemaBounds.vllm);
  // vLLM makes no grammar of optional tools.
  boundSchemas([tool(true)], schemaBounds.vllm);
  boundSchemas(answer(counting(129)), schemaBounds["llama-server"]);
});

test.each([
  ["formats", { type: "string", format: "ipv6" }],
  ["numbers with bounds", { type: "integer", minimum: -123_456, maximum: 654_321 }],
  ["patterns whose alternatives are counted", { type: "string", pattern: "^(ab|cd){1,128}$" }],
])("%s: vLLM gets fewer than 300 of them, because they block its front", (_, schema) => {
  const many = answer(record(300, schema));
  boundSchemas(many, { ...schemaBounds.vllm, sizeMax: Infinity });
  expect(() => boundSchemas(many, schemaBounds.vllm)).toThrow("must be a smaller schema");
});

test("a message quotes only names that are plain words, and nothing else of the schema", () => {
  const secret = "s3cret words";
  const schema = { type: "object", properties: { [secret]: { type: "string", pattern: `^(${secret}|a*)*$` } } };
  expect(() => boundSchemas(answer(schema), schemaBounds.openai)).toThrow(
    expect.objectContaining({
      param: "schema.properties.*.pattern",
      message: expect.not.stringContaining("s3cret") as string,
    }) as Error,
  );
});

/** Returns a function that draws numbers from 0 to below `below`, the same for each seed. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Returns a schema of any keywords, with references to other schemas and to itself. */
function randomSchema(pick: (below: number) => number, depth: number): unknown {
  const inside = () => randomSchema(pick, depth - 1);
  const some = () => Array.from({ length: pick(4) }, inside);
  const named = () => Object.fromEntries(some().map((schema, index) => [`p${index}`, schema]));
  const reference = () => ({ $ref: ["#", `#/$defs/d${pick(6)}`, "#/properties/p0", "#/nowhere"][pick(4)] });
  if (depth === 0) return [reference(), { type: "string" }, {}, true, { enum: ["a", "b", 3] }][pick(5)];
  return [
    () => ({ anyOf: some() }),
    () => ({ allOf: some(), properties: named() }),
    () => ({ type: ["object", "array", "object"], properties: named(), required: ["p0"], items: inside() }),
    () => ({ type: "object", properties: named(), additionalProperties: inside() }),
    () => ({ type: "array", items: inside(), maxItems: pick(3_000) }),
    () => ({ type: "string", pattern: "^(a|b){0,9}[^c]*$", maxLength: pick(3_000) }),
    reference,
  ][pick(7)]!();
}

/** Returns the steps of the check, or undefined if the schema is refused. */
function stepsOf(schema: object): number | undefined {
  try {
    return boundSchemas(answer(schema), schemaBounds.vllm).steps;
  } catch (error) {
    if (error instanceof ApiError && error.kind === "invalid_request") return undefined;
    throw error;
  }
}

test("the work of the check is limited, whatever the references [D10]", () => {
  const steps = Array.from({ length: 1_000 }, (_, seed) => {
    const pick = chance(seed);
    const $defs = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`d${index}`, randomSchema(pick, 3)]));
    return stepsOf({ ...(randomSchema(pick, 4) as object), $defs });
  });
  const taken = steps.filter((count) => count !== undefined);
  expect(Math.max(...taken)).toBeLessThanOrEqual(schemaBounds.vllm.stepsMax);
  // The check refuses some schemas and accepts others.
  expect(taken.length).toBeGreaterThan(100);
  expect(taken.length).toBeLessThan(950);
});

test("a schema of twice the size takes twice the steps", () => {
  const sized = (count: number) => ({
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`p${index}`, { type: "array", items: { $ref: "#/$defs/a" } }]),
    ),
    required: Array.from({ length: count }, (_, index) => `p${index}`),
    $defs: { a: { type: "object", properties: { b: { type: "string", maxLength: 10 } } } },
  });
  const steps = (count: number) => boundSchemas(answer(sized(count)), schemaBounds.vllm).steps;
  expect(steps(2_000) / steps(1_000)).toBeLessThan(2.1);
});
