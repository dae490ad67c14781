/** The embedded engine as a process: its start, its refusals, clients that leave, and its end. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, stat, truncate, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  eventsOf,
  metricsOf,
  post,
  runEngine,
  startEngine,
  tinyModel,
  until,
  type EngineProcess,
} from "./embedded-process.ts";

let directory: string;
let engine: EngineProcess;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "weiche-embedded-"));
  engine = await startEngine(["--context", "8192", "--parallel", "2"]);
});
afterAll(async () => {
  await engine[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const user = (content: string) => [{ role: "user", content }];
/** A request that continues to the end of the context. */
const endless = {
  model: "tiny",
  messages: user("Count from 1 to 100."),
  response_format: {
    type: "json_schema",
    json_schema: { name: "x", schema: { type: "array", items: { type: "string", minLength: 20 }, minItems: 250 } },
  },
};
const longPrompt = "The old train rolled through the valley, and the river was quiet. ".repeat(400);

describe("a start that cannot succeed explains itself in one line and exits with 1", () => {
  test.each([
    ["a missing file", ["--model", "/nowhere/model.gguf"], /cannot load .*: no such file$/],
    ["a file that is not a GGUF", ["--model", import.meta.filename], /cannot load .*Invalid GGUF magic/],
    ["a wrong flag", ["--model", tinyModel, "--colour"], /--colour/],
  ])("%s", async (_, args, reason) => {
    const { code, errors } = await runEngine([...args, "--port", "0"]);
    expect(code).toBe(1);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(reason);
  });

  test("a file that was cut off", async () => {
    const file = join(directory, "cut.gguf");
    await writeFile(file, readFileSync(tinyModel));
    await truncate(file, 200_000);
    const { code, errors } = await runEngine(["--model", file, "--port", "0"]);
    expect(code).toBe(1);
    expect(errors).toEqual([expect.stringMatching(/cannot load .*corrupted or incomplete/)]);
  });

  test("a port in use", async () => {
    const { code, errors } = await runEngine(["--model", tinyModel, "--port", new URL(engine.url).port]);
    expect(code).toBe(1);
    expect(errors).toEqual([expect.stringMatching(/cannot listen: .*EADDRINUSE/)]);
  });
});

test("the engine listens before the model is loaded, and reports that it is loading", async () => {
  await using starting = await startEngine([], false);
  const health = await fetch(`${starting.url}/health`);
  expect(health.status).toBe(503);
  expect(await health.json()).toMatchObject({ error: { message: "Loading model", type: "unavailable_error" } });
  let status = 503;
  while (status === 503) ({ status } = await fetch(`${starting.url}/health`));
  expect(status).toBe(200);
});

test("the engine reports its model and its context", async () => {
  const models = await (await fetch(`${engine.url}/v1/models`)).json();
  expect(models).toMatchObject({ object: "list", data: [{ id: "tiny", object: "model", max_model_len: 8192 }] });
});

test.each([
  ["another path", "GET", "/v1/files", undefined, 404, "not_found_error"],
  ["another method", "GET", "/v1/chat/completions", undefined, 404, "not_found_error"],
  ["another model", "POST", "/v1/chat/completions", { model: "huge", messages: [] }, 404, "not_found_error"],
  ["no JSON", "POST", "/v1/chat/completions", "{", 400, "invalid_request_error"],
  ["no object", "POST", "/v1/chat/completions", [], 400, "invalid_request_error"],
  ["a bad field", "POST", "/v1/chat/completions", { messages: [] }, 400, "invalid_request_error"],
  ["embeddings", "POST", "/v1/embeddings", { input: "Hi" }, 400, "not_supported_error"],
])("%s is refused in OpenAI's shape", async (_, method, path, body, status, type) => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const answer = await fetch(engine.url + path, { method, ...(body !== undefined && { body: text }) });
  expect(answer.status).toBe(status);
  const { error } = (await answer.json()) as { error: object };
  expect(error).toMatchObject({ message: expect.any(String), type, code: String(status) });
  expect(error).toHaveProperty("param");
});

test("JSON that is nested a hundred thousand levels deep does no harm", async () => {
  const deep = `{"messages":[{"role":"user","content":"Hi"}],"tools":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  const answer = await fetch(`${engine.url}/v1/chat/completions`, { method: "POST", body: deep });
  expect(answer.status).toBe(400);
  expect((await fetch(`${engine.url}/health`)).status).toBe(200);
});

describe("a client that leaves ends its generation within a second", () => {
  const gone = (metrics: Record<string, number>) => metrics["num_requests_running"] === 0;

  test.each([
    ["while streaming", true],
    ["while waiting for a whole body", false],
  ])("%s", async (_, stream) => {
    const leaver = new AbortController();
    const before = (await metricsOf(engine.url))["generation_tokens_total"]!;
    const answer = post(engine.url, "/v1/chat/completions", { ...endless, stream }, leaver.signal);
    const outcome = answer.then((response) => response.text()).catch(() => "cut");
    await until(engine.url, 5_000, (metrics) => metrics["generation_tokens_total"]! > before + 10);
    leaver.abort();
    const { metrics } = await until(engine.url, 1_000, gone);
    expect(await outcome).toBe("cut");
    expect(metrics["generation_tokens_total"]).toBe((await metricsOf(engine.url))["generation_tokens_total"]);
  });

  test("while its prompt is being read", async () => {
    const leaver = new AbortController();
    const before = (await metricsOf(engine.url))["prompt_tokens_total"]!;
    const answer = post(engine.url, "/v1/chat/completions", { messages: user(longPrompt) }, leaver.signal);
    const outcome = answer.catch(() => "cut");
    await until(engine.url, 5_000, (metrics) => metrics["prompt_tokens_total"]! > before);
    leaver.abort();
    expect(await outcome).toBe("cut");
    const { metrics } = await until(engine.url, 1_000, gone);
    expect(metrics["prompt_tokens_total"]! - before).toBeLessThan(5_000);
  });

  test("while it waits for others", async () => {
    const leavers = Array.from({ length: 3 }, () => new AbortController());
    const cuts = leavers.map(({ signal }) =>
      post(engine.url, "/v1/chat/completions", endless, signal).catch(() => "cut"),
    );
    await until(engine.url, 5_000, (metrics) => metrics["num_requests_waiting"] === 1);
    leavers[2]!.abort();
    await until(engine.url, 1_000, (metrics) => metrics["num_requests_waiting"] === 0);
    expect((await metricsOf(engine.url))["num_requests_running"]).toBe(2);
    for (const leaver of leavers) leaver.abort();
    await until(engine.url, 1_000, gone);
    expect(await Promise.all(cuts)).toEqual(["cut", "cut", "cut"]);
  });

  test("the last usage that a client got contains the tokens generated until then", async () => {
    const before = await metricsOf(engine.url);
    const usages: number[] = [];
    const options = { stream: true, stream_options: { include_usage: true, continuous_usage_stats: true } };
    const leaver = new AbortController();
    const response = await post(engine.url, "/v1/chat/completions", { ...endless, ...options }, leaver.signal);
    const decoder = new TextDecoder();
    for await (const bytes of response.body!) {
      const found = decoder.decode(bytes as Uint8Array).matchAll(/"completion_tokens":(\d+)/g);
      usages.push(...[...found].map(([, tokens]) => Number(tokens)));
      if (usages.length > 50) break;
    }
    leaver.abort();
    const { metrics } = await until(engine.url, 1_000, gone);
    expect(usages).toEqual(usages.toSorted((a, b) => a - b));
    const generated = metrics["generation_tokens_total"]! - before["generation_tokens_total"]!;
    expect(generated - usages.at(-1)!).toBeLessThan(20);
  });
});

test("more requests than the engine runs at once wait for their turn, and all are answered", async () => {
  const messages = user("Who are you?");
  const requests = Array.from({ length: 7 }, () =>
    post(engine.url, "/v1/chat/completions", { messages, max_tokens: 8 }),
  );
  const answers = await Promise.all(requests);
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 7 }, () => 200));
  const { metrics } = await until(engine.url, 1_000, (now) => now["num_requests_running"] === 0);
  expect(metrics["num_requests_waiting"]).toBe(0);
});

describe("SIGTERM", () => {
  test("ends an idle engine at once, with exit code 0", async () => {
    await using idle = await startEngine();
    idle.process.kill("SIGTERM");
    expect(await once(idle.process, "exit")).toEqual([0, null]);
  });

  test("ends running requests with an error event and no end marker", async () => {
    await using busy = await startEngine();
    const response = await post(busy.url, "/v1/chat/completions", { ...endless, stream: true });
    const body = post(busy.url, "/v1/chat/completions", endless);
    await until(busy.url, 5_000, (metrics) => metrics["num_requests_running"] === 2);
    const events = eventsOf(response);
    busy.process.kill("SIGTERM");
    expect(await once(busy.process, "exit")).toEqual([0, null]);
    expect((await events).at(-1)).toMatchObject({ error: { type: "service_unavailable" } });
    expect((await body).status).toBe(503);
  });
});

test("a Unix socket works like a port, even if a killed engine left one", async () => {
  const socketPath = join(directory, "engine.sock");
  for (const attempt of ["first", "second"]) {
    const { process: child } = await startEngineOn(socketPath);
    const health = request({ socketPath, path: "/health" }).end();
    const [response] = (await once(health, "response")) as [{ statusCode: number; resume(): void }];
    response.resume();
    expect([200, 503], `${attempt} start`).toContain(response.statusCode);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect((await stat(socketPath)).isSocket()).toBe(true);
  }
});

function startEngineOn(socketPath: string): Promise<EngineProcess> {
  return startEngine(["--socket", socketPath], false);
}
