/** Tests the whole system on engines of each dialect. Whatever words the engine uses, clients get the same answers. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cluster, until } from "../cluster/cluster.ts";
import { SimTrio, simDialects } from "../cluster/sim-trio.ts";
import { countChatTokens } from "../sim-engine/request.ts";

/** The engines accept less than the catalogue says. The engines' limits apply. */
const windowTokens = 2_048;
const inputTokens = 256;
const promised = { contextTokens: 4_096, inputTokens: 512 };

const entry = { status: "Beta", factors: [{ validFrom: "2026-01-01T00:00:00+01:00", factor: 1 }] };
const language = {
  ...{ ...entry, category: "language", contextTokens: promised.contextTokens },
  reasoning: { mode: "optional", efforts: ["low", "high"], templateKwargs: "accepted" },
};
const embeddings = {
  ...{ ...entry, category: "embeddings", contextTokens: promised.contextTokens },
  embeddings: { dimensions: { min: 8, max: 64, default: 64 }, inputTokens: promised.inputTokens },
};

let chats: SimTrio;
let embeds: SimTrio;
let cluster: Cluster;
let apiKey: string;

beforeAll(async () => {
  const shared = { keepBodies: true, ttftMs: 2, itlMs: 2, maxRunning: 8 };
  chats = await SimTrio.start("chat", { ...shared, contextTokens: windowTokens });
  embeds = await SimTrio.start("embed", { ...shared, contextTokens: inputTokens, embeddingDimensions: 64 });
  cluster = await Cluster.start({
    catalogue: [
      ...chats.models.map((id) => ({ ...language, id })),
      ...embeds.models.map((id) => ({ ...embeddings, id })),
    ],
    agents: { "node-1": { slots: [...chats.slots(), ...embeds.slots()] } },
  });
  ({ apiKey } = await cluster.account());
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  await Promise.all([chats, embeds].map((trio) => trio[Symbol.asyncDispose]()));
});

type Body = Record<string, unknown>;

async function post(path: string, body: object, init: { key?: string; signal?: AbortSignal } = {}): Promise<Response> {
  return await fetch(`${cluster.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${init.key ?? apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(init.signal ? { signal: init.signal } : {}),
  });
}

/** Asks each engine the same. Returns the answers without the parts that may differ. */
async function askEach<Answer>(read: (ask: (body: Body) => Promise<Response>) => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const model of chats.models) answers.push(await read((body) => post("/chat/completions", { model, ...body })));
  return answers;
}

const user = (content: string) => ({ messages: [{ role: "user", content }] });

/** Returns the data of a stream's events, and checks that the stream contains nothing else. */
async function eventsOf(response: Response): Promise<string[]> {
  expect(response.status).toBe(200);
  const events = (await response.text()).split("\n\n");
  expect(events.pop()).toBe("");
  return events.map((event) => event.replace(/^data: /, ""));
}

function chunksOf(events: readonly string[]): Body[] {
  expect(events.at(-1)).toBe("[DONE]");
  return events.slice(0, -1).map((data) => {
    const { id: _id, created: _created, model: _model, ...said } = JSON.parse(data) as Body;
    return said;
  });
}

const chunk = (delta: object, finish_reason: string | null = null) => ({
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason }],
});

describe("a chat", () => {
  const question = { ...user("sim:tokens=3,reasoning=2 hello"), reasoning_effort: "high" };
  const promptTokens = countChatTokens(question);
  const usage = {
    ...{ prompt_tokens: promptTokens, completion_tokens: 5, total_tokens: promptTokens + 5 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };

  test("as one body contains reasoning, text, finish reason and usage, and no field of the engine", async () => {
    const bodies = await askEach(async (ask) => (await (await ask(question)).json()) as Body);
    for (const body of bodies) {
      expect(Object.keys(body).toSorted()).toEqual(["choices", "created", "id", "model", "object", "usage"]);
      expect(body["choices"]).toEqual([
        {
          ...{ index: 0, finish_reason: "stop", logprobs: null },
          message: { role: "assistant", content: "t0 t1 t2 ", reasoning_content: "r0 r1 " },
        },
      ]);
      expect(body["usage"]).toMatchObject(usage);
    }
    expect(bodies.map(({ model }) => model)).toEqual(chats.models);
  });

  test("as a stream begins with the role, then sends reasoning, text and the finish reason, and usage only on request", async () => {
    const streams = await askEach(async (ask) => {
      const asked = { ...question, stream: true };
      const plain = chunksOf(await eventsOf(await ask(asked)));
      return {
        plain,
        counted: chunksOf(await eventsOf(await ask({ ...asked, stream_options: { include_usage: true } }))),
      };
    });
    const said = [
      ...[chunk({ role: "assistant", content: "" }), chunk({ reasoning_content: "r0 " })],
      ...[chunk({ reasoning_content: "r1 " }), chunk({ content: "t0 " }), chunk({ content: "t1 " })],
      ...[chunk({ content: "t2 " }), chunk({}, "stop")],
    ];
    for (const { plain, counted } of streams) {
      expect(plain).toEqual(said);
      expect(counted.slice(0, -1)).toMatchObject(said);
      expect(counted.at(-1)).toMatchObject({ choices: [], usage });
    }
  });
});

describe("of several tools", () => {
  const parameters = { type: "object", properties: { city: { type: "string" } } };
  const tools = ["first", "second"].map((name) => ({ type: "function", function: { name, parameters } }));

  test.each([
    ["the tool that the request names is called", { type: "function", function: { name: "second" } }, "second"],
    ["one is called if a call is required", "required", "first"],
    ["one may be called if calls are allowed", "auto", "first"],
  ])("%s", async (_, tool_choice, name) => {
    const asked = { ...user("sim:tokens=3 hello"), tools, tool_choice };
    await askEach(async (ask) => {
      const body = (await (await ask(asked)).json()) as { choices: { message: Body; finish_reason: string }[] };
      expect(body.choices[0]).toMatchObject({
        finish_reason: "tool_calls",
        message: {
          content: null,
          tool_calls: [{ id: expect.any(String) as string, type: "function", function: { name } }],
        },
      });
      const chunks = chunksOf(await eventsOf(await ask({ ...asked, stream: true }))) as unknown as ReturnType<
        typeof chunk
      >[];
      const pieces = chunks.flatMap(({ choices }) => (choices[0]!.delta as { tool_calls?: Body[] }).tool_calls ?? []);
      expect(pieces[0]).toMatchObject({
        index: 0,
        id: expect.any(String) as string,
        type: "function",
        function: { name },
      });
      const given = pieces.map((piece) => (piece["function"] as { arguments: string }).arguments).join("");
      expect(JSON.parse(given)).toEqual({ city: "xxxx" });
      expect(pieces.filter((piece) => "id" in piece)).toHaveLength(1);
      expect(chunks.at(-1)!.choices[0]!.finish_reason).toBe("tool_calls");
    });
  });
});

describe("a request that is too long", () => {
  const text = "x".repeat(12_000);

  /** Returns the window and the token counts of input and completion in a refusal. */
  async function countsOf(answer: Response): Promise<number[]> {
    expect(answer.status).toBe(400);
    const { error } = (await answer.json()) as { error: { type: string; param: unknown; message: string } };
    expect(error).toMatchObject({
      type: "ContextWindowExceededError",
      param: expect.stringMatching(/^(messages|input\[1\])$/),
    });
    const [window, , ...asked] = error.message.match(/\d+/g)!.map(Number);
    return [window!, ...asked];
  }

  test.each([
    ["refused with a status", []],
    ["refused with the first event of a stream", ["late-refusal"]],
  ])("because of its prompt, %s, gets one error with both counts", async (_, faults) => {
    for (const engine of chats.engines.values()) engine.setFaults(faults);
    for (const stream of [false, true])
      for (const counts of await askEach(async (ask) => countsOf(await ask({ ...user(text), stream }))))
        expect(counts).toEqual([windowTokens, countChatTokens(user(text)), 0]);
    for (const engine of chats.engines.values()) engine.setFaults([]);
  });

  test("because of prompt and token limit together is refused, even if the engine would accept it", async () => {
    const half = user("x".repeat(6_000));
    for (const counts of await askEach(async (ask) => countsOf(await ask({ ...half, max_tokens: 1_000 }))))
      expect(counts).toEqual([windowTokens, countChatTokens(half), 1_000]);
  });

  test("because of one of several texts to embed is refused", async () => {
    const input = ["short", "x".repeat(2_000), "y".repeat(8)];
    for (const model of embeds.models)
      expect(await countsOf(await post("/embeddings", { model, input }))).toEqual([inputTokens, 500, 0]);
  });

  test("is announced: the agent reports how far its engines fall below the catalogue", async () => {
    const agent = cluster.agents.get("node-1")!;
    const metrics = await (await fetch(`http://${agent.listen["ops"]}/metrics`)).text();
    for (const [models, missing] of [
      [chats.models, promised.contextTokens - windowTokens],
      [embeds.models, promised.inputTokens - inputTokens],
    ] as const)
      for (const model of models)
        expect(metrics).toContain(
          `weiche_agent_engine_window_missing_tokens{slot="${model}",model="${model}"} ${missing}`,
        );
    const warned = agent.output.filter((line) => line.includes("the context of the engine is shorter"));
    expect(warned).toHaveLength(chats.models.length + embeds.models.length);
  });
});

test("embeddings are the same vectors, shortened by the agent, whether or not the engine supports `dimensions`", async () => {
  const answers = await Promise.all(
    embeds.models.map(async (model) => {
      const asked = { model, input: ["one", "two"], dimensions: 16 };
      const floats = (await (await post("/embeddings", asked)).json()) as { data: { embedding: number[] }[] };
      const packed = (await (await post("/embeddings", { ...asked, encoding_format: "base64" })).json()) as {
        data: { embedding: string }[];
        usage: object;
      };
      return { vectors: floats.data.map(({ embedding }) => embedding), packed: packed.data, usage: packed.usage };
    }),
  );
  const [first] = answers;
  expect(answers).toEqual([first, first, first]);
  expect(first!.usage).toEqual({ prompt_tokens: 2, total_tokens: 2 });
  for (const [at, vector] of first!.vectors.entries()) {
    expect(vector).toHaveLength(16);
    expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
    const bytes = new Uint8Array(Buffer.from(first!.packed[at]!.embedding, "base64"));
    expect([...new Float32Array(bytes.buffer)]).toEqual(vector.map(Math.fround));
  }
});

test("a client that leaves pays for the tokens generated until then, and its engine stops", async () => {
  const { accountId, apiKey: key } = await cluster.account("Leaver");
  const pieces = 10;
  const received = await Promise.all(
    chats.models.map(async (model) => {
      const leaving = new AbortController();
      const body = { model, stream: true, ...user("sim:tokens=1000,itl=10 hello") };
      const answer = await post("/chat/completions", body, { key, signal: leaving.signal });
      let heard = "";
      const decoder = new TextDecoder();
      for await (const bytes of answer.body!) {
        heard += decoder.decode(bytes as Uint8Array, { stream: true });
        if (heard.split('"content":"t').length > pieces) break;
      }
      leaving.abort();
      return heard.split('"content":"t').length - 1;
    }),
  );
  const last = () => simDialects.map((dialect) => chats.of(dialect).requests().at(-1)!);
  await until("the engines to stop", () => last().every(({ closedAtMs }) => closedAtMs !== undefined), 10_000);
  let rows: { model: string; completionTokens: number }[] = [];
  await until("the records", async () => {
    ({ rows } = (await cluster.weiche("usage", "--account", accountId, "--by", "model")) as { rows: typeof rows });
    return rows.length === chats.models.length;
  });
  for (const [at, entry] of last().entries()) {
    const billed = rows.find((row) => row.model === chats.models[at])!.completionTokens;
    expect(entry).toMatchObject({ aborted: true, finished: false });
    expect(entry.generated).toBeLessThan(500);
    expect(billed).toBeGreaterThanOrEqual(received[at]!);
    expect(billed).toBeLessThanOrEqual(entry.generated);
  }
});

test("engines get no field that a client made up [D7]", async () => {
  await askEach((ask) => ask({ ...user("sim:tokens=1 hello"), user: "someone", max_tokens: 5 }));
  const bodies = simDialects.map((dialect) => chats.of(dialect).requests().at(-1)!.body as Body);
  for (const body of bodies)
    expect(body).toMatchObject({ stream: true, max_tokens: 5, stream_options: { include_usage: true } });
  expect(bodies[0]).toMatchObject({ cache_salt: expect.any(String) as string, repetition_penalty: 1 });
  expect(bodies[1]).toMatchObject({ timings_per_token: true, return_progress: true, min_p: 0 });
  for (const body of bodies) expect(body).not.toHaveProperty("user");
});
