/** Schemas of other requests do not delay a stream of the embedded engine, behind a real ingress. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { costlySchemas } from "../../test/exchange/costly-schemas.ts";
import { post, startEngine, type EngineProcess } from "./embedded-process.ts";
import { model, Rig, type Answer } from "../../test/exchange/ingress-rig.ts";
import { usualSchemas, usualTools } from "../../test/exchange/usual-schemas.ts";

/** A costly schema blocked streams for 39 s and more. A busy machine alone causes gaps of a few 100 ms. */
const gapMsMax = 2_000;

let engine: EngineProcess;
beforeAll(async () => {
  engine = await startEngine(["--parallel", "2", "--alias", model]);
});
afterAll(() => engine[Symbol.asyncDispose]());

const openRig = () => Rig.open(() => {}, { dialect: "openai", endpoint: { origin: engine.url }, windowTokens: 4_096 });
const inFormat = (schema: object) => ({ response_format: { type: "json_schema", json_schema: { name: "a", schema } } });

/** A schema whose answer fills the engine's context window. */
const long = { type: "array", items: { type: "array", items: { type: "boolean" }, minItems: 256 }, minItems: 256 };

/** Returns the longest gap between two pieces of streams that run one after another during `attack`. */
async function longestGapMs(rig: Rig, attack: () => Promise<void>): Promise<number> {
  const started = Promise.withResolvers<void>();
  let isOver = false;
  let longestMs = 0;
  const stream = async () => {
    const victim = rig.chat({ stream: true, ...inFormat(long) });
    let lastMs: number | undefined;
    const onPiece = () => {
      const nowMs = systemClock.monotonicMs();
      longestMs = Math.max(longestMs, nowMs - (lastMs ?? nowMs));
      lastMs = nowMs;
      started.resolve();
      if (isOver) victim.stream.cancel();
    };
    victim.stream.on("data", onPiece);
    await victim.answer;
  };
  const streams = (async () => {
    while (!isOver) await stream();
  })();
  await started.promise;
  await attack();
  isOver = true;
  await streams;
  await rig.quiet();
  return longestMs;
}

test("costly schemas are refused while a stream goes on [D10]", async () => {
  await using rig = await openRig();
  const answers: Answer[] = [];
  const gapMs = await longestGapMs(rig, async () => {
    for (const { schema } of costlySchemas) answers.push(await rig.chat(inFormat(schema)).answer);
  });
  expect(answers.map(({ status }) => status)).toEqual(costlySchemas.map(() => 400));
  expect(gapMs).toBeLessThan(gapMsMax);
});

test("usual schemas are answered while a stream goes on [D10]", async () => {
  await using rig = await openRig();
  const bodies = [
    ...usualSchemas.slice(-8).map(({ schema }) => inFormat(schema)),
    {
      tools: usualTools.map(({ name, schema }) => ({ type: "function", function: { name, parameters: schema } })),
      tool_choice: "required",
    },
  ];
  const answers: Answer[] = [];
  const gapMs = await longestGapMs(rig, async () => {
    for (const body of bodies) answers.push(await rig.chat({ ...body, max_tokens: 8 }).answer);
  });
  // The window of the tiny model is too small for so many tools.
  expect(answers.map(({ status }) => status)).toEqual(
    bodies.map((_, index) => (index === bodies.length - 1 ? 400 : 200)),
  );
  expect(gapMs).toBeLessThan(gapMsMax);
});

test.each([
  ["3,000 references to itself in an allOf", { allOf: Array.from({ length: 3_000 }, () => ({ $ref: "#" })) }],
  ["50,000 values", { enum: Array.from({ length: 50_000 }, (_, index) => `value ${index}`) }],
])("the engine itself refuses %s [D10]", async (_, schema) => {
  const messages = [{ role: "user", content: "hi" }];
  const response = await post(engine.url, "/v1/chat/completions", { messages, ...inFormat(schema), max_tokens: 1 });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain("the JSON schema is too large");
});
