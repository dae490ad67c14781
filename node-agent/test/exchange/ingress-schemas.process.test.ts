/** A schema that would cost an engine too much is refused by the agent before it takes a place. */
import { expect, test } from "vitest";
import { costlySchemas } from "./costly-schemas.ts";
import { choicesOf, Rig } from "./ingress-rig.ts";
import { delta, done, usageEvent } from "./scripted-engine.ts";
import { usualSchemas, usualTools } from "./usual-schemas.ts";

const answer = delta({ content: "{}" }) + delta({}, "stop") + usageEvent(3, 1) + done;

const inFormat = (schema: object) => ({ response_format: { type: "json_schema", json_schema: { name: "a", schema } } });
const inTools = (...schemas: readonly object[]) => ({
  tools: schemas.map((parameters, index) => ({ type: "function", function: { name: `f${index}`, parameters } })),
});

test.each(["llama-server", "openai", "vllm"] as const)(
  "costly schemas never reach an engine: %s [D10]",
  async (dialect) => {
    await using rig = await Rig.open(answer, { dialect });
    for (const { schema } of costlySchemas)
      for (const [body, at] of [
        [inFormat(schema), "response_format.json_schema.schema"],
        [{ ...inTools({}, schema), tool_choice: "required" }, "tools[1].function.parameters"],
      ] as const) {
        const { status, text } = await rig.chat(body).answer;
        expect(status).toBe(400);
        const { error } = JSON.parse(text) as { error: { message: string; param: string } };
        expect(error.param.startsWith(at)).toBe(true);
        expect(error.message.length).toBeLessThan(500);
      }
    const many = JSON.parse(
      (await rig.chat(inTools(...Array.from({ length: 501 }, () => ({})))).answer).text,
    ) as object;
    expect(many).toMatchObject({ error: { param: "tools", message: expect.stringContaining("at most") } });
    await rig.quiet();
    expect([rig.engine.connections, rig.bugs]).toEqual([0, []]);
    expect(rig.slot.requests, "requests for a place, each of which could start a switch").toEqual([]);
  },
);

test("a wide tool reaches an engine in its light form, from a small body and from one that is read in a thread", async () => {
  await using rig = await Rig.open(answer, { dialect: "llama-server" });
  const properties = Object.fromEntries(Array.from({ length: 48 }, (_, index) => [`p${index}`, { type: "string" }]));
  for (const description of ["d", "d".repeat(200_000)]) {
    const wide = { type: "object", properties, description };
    expect((await rig.chat({ ...inTools({}, wide), stream: true }).answer).status).toBe(200);
    expect(rig.engine.saw.at(-1)!.body).toMatchObject(inTools({}, { ...wide, oneOf: [{ type: "object" }] }));
  }
});

test.each(["llama-server", "openai", "vllm"] as const)(
  "usual schemas reach an engine unchanged: %s [D10]",
  async (dialect) => {
    await using rig = await Rig.open(answer, { dialect });
    const bodies = [
      ...usualSchemas.map(({ schema }) => inFormat(schema)),
      inTools(...usualTools.map(({ schema }) => schema)),
    ];
    for (const body of bodies) expect((await rig.chat({ ...body, stream: true }).answer).status).toBe(200);
    const [first] = bodies;
    expect(rig.engine.saw).toHaveLength(bodies.length);
    expect(rig.engine.saw[0]!.body).toMatchObject(first!);
    expect(choicesOf((await rig.chat({ ...first, stream: true }).answer).text)).not.toEqual([]);
  },
);
