import { describe, expect, test } from "vitest";
import type { RawEngine } from "./config-schema.ts";
import { commandMistakes, commandWarnings, modelPaths } from "./engine-command-rules.ts";

const port = ["--port", "{port}"];
const engineOf = (given: Partial<RawEngine>): RawEngine => ({
  model: "m",
  dialect: "vllm",
  launcher: "process",
  maxConcurrent: 256,
  ...given,
});
const vllm = (...flags: string[]) => engineOf({ command: ["vllm", "serve", ...flags] });
const asleep: Partial<RawEngine> = { sleep: { level: 1 }, env: { VLLM_SERVER_DEV_MODE: "1" } };
const mistakes = (engine: RawEngine) => [...commandMistakes(engine)].map(([, message]) => message);
const warnings = (engine: RawEngine) => [...commandWarnings(engine)].map(([, message]) => message);

describe("an engine that other hosts could reach is a mistake", () => {
  const tei = engineOf({ dialect: "openai", command: ["text-embeddings-router"] });
  const cases: [name: string, engine: RawEngine][] = [
    ["an address of the host", vllm("--host", "0.0.0.0", ...port)],
    ["the same with an equals sign", vllm("--host=::", ...port)],
    ["in a line for a shell", engineOf({ command: ["sh", "-c", "exec vllm serve --host 10.0.0.1"] })],
    ["the host name of TEI", { ...tei, env: { HOSTNAME: "0.0.0.0" } }],
    ["its flag", { ...tei, command: ["text-embeddings-router", "--hostname", "0.0.0.0"] }],
  ];
  test.each(cases)("%s", (_name, engine) => {
    expect(mistakes(engine)).toEqual([expect.stringContaining("other hosts could reach the engine")]);
  });

  test("an engine on another host that sleeps is a mistake too", () => {
    const engine = engineOf({ launcher: "external", url: "http://10.0.0.1:8000" });
    expect(mistakes(engine)).toEqual([]);
    expect(mistakes({ ...engine, ...asleep })).toEqual([expect.stringContaining("use loopback only")]);
    expect(mistakes({ ...engine, ...asleep, url: "http://[::1]:8000" })).toEqual([]);
  });

  test("an engine without an address causes a warning that names the flag", () => {
    expect(warnings(vllm(...port))).toEqual([expect.stringContaining("add --host 127.0.0.1")]);
    expect(warnings(tei)).toEqual([expect.stringContaining("add --hostname 127.0.0.1")]);
    const hidden = engineOf({ launcher: "systemd", unit: "e@.service" });
    expect(warnings(hidden)).toEqual(["not visible in this command: make sure that its vLLM has --host 127.0.0.1"]);
    expect(warnings({ ...hidden, sleep: { level: 1 } })).toEqual([
      "not visible in this command: make sure that its vLLM has --host 127.0.0.1 --enable-sleep-mode",
      'sleep needs VLLM_SERVER_DEV_MODE: "1" in env',
    ]);
    expect(warnings(vllm("--config", "file.yaml"))).toEqual([expect.stringContaining("not visible")]);
  });

  test("an engine with fewer stop strings than the service causes a warning, and an engine with a hidden command causes one, too", () => {
    const fewer = { ...vllm("--host", "127.0.0.1", ...port), env: { VLLM_MAX_STOP_STRINGS: "4" } };
    expect(warnings(fewer)).toEqual(["the service takes 64 stop strings: remove VLLM_MAX_STOP_STRINGS"]);
    expect(warnings({ ...fewer, env: { VLLM_MAX_STOP_STRINGS: "128" } })).toEqual([]);
    const external = engineOf({ launcher: "external", url: "http://127.0.0.1:8000" });
    expect(warnings(external)).toEqual([
      "not visible in this command: make sure that its vLLM was started with VLLM_MAX_STOP_STRINGS=64",
    ]);
  });

  test.each([["--host", "127.0.0.1"], ["--host=localhost"], ["--uds={socket}"]])(
    "%s %s stays on this host",
    (...flags) => {
      const engine = vllm(...flags.filter(Boolean));
      expect([...mistakes(engine), ...warnings(engine)]).toEqual([]);
    },
  );
});

test.each([
  ["a name and a path", ["sql=/a", "letters=/b"]],
  ["JSON", ['{"name":"sql","path":"/a"}', '{"name":"letters","path":"/b"}']],
  [
    "JSON with spaces",
    ['{ "name": "sql", "path": "/a", "base_model_name": "m" }', '{"path": "/b", "name": "letters"}'],
  ],
])("adapters that are named as %s are served", (_name, modules) => {
  const engine = vllm("--served-model-name", "m", "--enable-lora", "--lora-modules", ...modules, "--uds={socket}");
  const of = (...models: string[]) => mistakes({ ...engine, model: undefined, models });
  expect(of("m", "sql", "letters")).toEqual([]);
  expect(of("m", "base_model_name", "letter")).toEqual([
    'the command does not serve "base_model_name": name it in --served-model-name or --lora-modules.',
    'the command does not serve "letter": name it in --served-model-name or --lora-modules. Did you mean "letters"?',
  ]);
});

test("of two lists of adapters in a command the last one counts, as in vLLM", () => {
  const lists = ["--lora-modules", "sql=/a", "--lora-modules", "letters=/b"];
  const engine = vllm("--served-model-name", "m", "--enable-lora", ...lists, "--uds={socket}");
  const of = (...models: string[]) => mistakes({ ...engine, model: undefined, models });
  expect(of("m", "letters")).toEqual([]);
  expect(of("m", "sql")).toEqual([expect.stringContaining('does not serve "sql"')]);
});

test("more adapters than vLLM runs at once cause a warning", () => {
  const modules = ["--enable-lora", "--lora-modules", "sql=/a", '{"name":"letters","path":"/b"}'];
  const engine = (...flags: string[]) => vllm("--served-model-name=m", "--uds={socket}", ...flags, ...modules);
  expect(warnings(engine())).toEqual([
    "vLLM runs 1 of 2 adapters at once, and requests for the others wait inside it: add --max-loras 2",
  ]);
  expect(warnings(engine("--max-loras", "2"))).toEqual([]);
});

test("a llama-server serves each name of its --alias", () => {
  const of = (models: string[], ...alias: string[]) =>
    mistakes({
      ...engineOf({ dialect: "llama-server", command: ["llama-server", ...alias] }),
      model: undefined,
      models,
    });
  expect(of(["m", "n"], "--alias", "n,m")).toEqual([]);
  expect(of(["m", "n"], "-a", "m, o")).toEqual(['the command does not serve "n": name it in --alias.']);
  const named = engineOf({ dialect: "llama-server", command: ["llama-server"], env: { LLAMA_ARG_ALIAS: "l,m" } });
  expect(warnings(named)).not.toContainEqual(expect.stringContaining("never becomes ready"));
});

describe("a sleeping vLLM", () => {
  const host = ["--host", "127.0.0.1"];
  test("needs the flag and the development mode", () => {
    expect(mistakes({ ...vllm(...host), sleep: { level: 1 } })).toEqual([
      "sleep needs --enable-sleep-mode",
      'sleep needs VLLM_SERVER_DEV_MODE: "1"',
    ]);
    expect(mistakes({ ...vllm(...host, "--enable-sleep-mode"), ...asleep })).toEqual([]);
  });

  test("frees no memory with expandable segments", () => {
    const env = { VLLM_SERVER_DEV_MODE: "1", PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True" };
    expect(mistakes({ ...vllm("--enable-sleep-mode"), ...asleep, env })).toEqual([
      "with expandable_segments:True sleep frees no memory",
    ]);
  });
});

test("a llama-server with unsuitable flags causes a warning", () => {
  const engine = (...flags: string[]) =>
    engineOf({ dialect: "llama-server", command: ["/opt/llama-server", ...flags] });
  expect(warnings(engine())).toEqual([
    "never becomes ready without --alias m",
    expect.stringContaining("without --metrics"),
    expect.stringContaining("add --no-prefill-assistant"),
    "without -np its slots share one context, and it gets one request at a time: add -np N",
  ]);
  const named = ["-a", "m", "--metrics", "--no-prefill-assistant"];
  const good = [...named, "-np", "4"];
  expect(warnings(engine(...good))).toEqual([]);
  expect(warnings(engine(...named, "-np", "1", "-kvu"))).toEqual([]);
  expect(warnings(engine(...good, "-kvu"))).toEqual([expect.stringContaining("one request at a time")]);
  expect(warnings(engine(...good, "-kvu", "-c", "8192"))).toEqual([
    expect.stringContaining("at most as many requests at a time as can fill their slots"),
  ]);
  expect(warnings(engine(...good, "--model=m.gguf"))).toEqual([
    "llama-server refuses --model=…: write the value as a separate item",
  ]);
  const wrongVectors = [expect.stringContaining("wrong vectors: add --kv-unified")];
  expect(warnings(engine(...named, "--embeddings", "-np", "4"))).toEqual(wrongVectors);
  expect(warnings(engine(...named, "--embeddings", "--parallel", "2"))).toEqual(wrongVectors);
  for (const flags of [["-np", "4", "-kvu"], ["-np", "4", "--kv-unified"], ["-np", "1"], []])
    expect(warnings(engine(...named, "--embeddings", ...flags))).toEqual([]);
  const unified = { LLAMA_ARG_KV_UNIFIED: "on" };
  expect(warnings({ ...engine(...named, "--embeddings", "-np", "4"), env: unified })).toEqual([]);
  const saving = expect.stringContaining("keeps the prompts of all accounts together") as string;
  expect(warnings(engine(...good, "--cache-ram", "512"))).toEqual([saving]);
  expect(warnings(engine(...good, "-cram", "-1"))).toEqual([saving]);
  expect(warnings({ ...engine(...good), env: { LLAMA_ARG_CACHE_RAM: "512" } })).toEqual([saving]);
  expect(warnings({ ...engine(...good, "--cache-ram", "512"), cachePrompts: "shared" })).toEqual([]);
  expect(warnings(engine(...good, "--cache-ram", "0"))).toEqual([]);
  const external = engineOf({ dialect: "llama-server", launcher: "external", url: "http://127.0.0.1:1" });
  expect(warnings(external)).toEqual([expect.stringContaining("started with --cache-ram 0")]);
  expect(warnings({ ...external, cachePrompts: "shared" })).toEqual([]);
  expect(warnings(engine("-a", "m", "--metrics", "--embeddings")), "it serves no chats").toEqual([]);
});

describe("the files of models", () => {
  const llama = (...command: string[]) => engineOf({ dialect: "llama-server", command });
  const cases: [name: string, engine: RawEngine, paths: string[]][] = [
    ["llama-server's model", llama("/opt/llama-server", "-m", "small.gguf"), ["small.gguf"]],
    ["and its projector", llama("llama-server", "--model", "/a.gguf", "--mmproj", "/b.gguf"), ["/a.gguf", "/b.gguf"]],
    ["vLLM's directory", vllm("/srv/models/m", ...port), ["/srv/models/m"]],
    ["vLLM's directory by its flag", vllm(...port, "--model=./m"), ["./m"]],
    ["not a name, which is downloaded", vllm("org/name", ...port), []],
    ["not a model that llama-server downloads", llama("llama-server", "-hf", "org/name:Q4"), []],
    ["not the files of a container", llama("docker", "run", "image", "llama-server", "-m", "/models/m.gguf"), []],
    ["without a name that a shell fills in", llama("sh", "-c", "exec llama-server -m $MODEL"), []],
  ];
  test.each(cases)("%s", (_name, engine, paths) => expect(modelPaths(engine)).toEqual(paths));
});
