import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { checkAgentText, loadAgentConfig, type AgentConfig } from "./config.ts";

/** A valid file, line by line; each case changes or adds lines. */
const right = [
  "node: gpu-1",
  "slots:",
  "  - name: a",
  "    gpus: [0]",
  "    engines:",
  "      - model: m",
  "        dialect: vllm",
  '        command: [vllm, serve, --port, "{port}"]',
];

function withLine(line: number, text: string): string {
  return right.toSpliced(line - 1, 1, ...text.split("\n")).join("\n");
}

test("a right agent.yaml has no mistakes", () => {
  expect(checkAgentText(right.join("\n")).mistakes).toEqual([]);
});

describe("a mistake in agent.yaml has its line and what to do", () => {
  const cases: [name: string, text: string, line: number, message: string][] = [
    ["a key nearly written", withLine(4, "    gpu: [0]"), 4, 'unknown key "slots.0.gpu"; did you mean "gpus"?'],
    [
      "a dialect nearly written",
      withLine(7, "        dialect: vlm"),
      7,
      '"slots.0.engines.0.dialect" must be one of vllm, llama-server, openai; did you mean "vllm"?',
    ],
    [
      "what to do with requests, nearly written",
      withLine(4, "    whileSwitching: hol"),
      4,
      '"slots.0.whileSwitching" must be one of hold, refuse; did you mean "hold"?',
    ],
    [
      "a slot listed twice",
      [
        ...right,
        "  - name: a",
        "    engines: [{ model: n, dialect: openai, launcher: external, url: http://h:1 }]",
      ].join("\n"),
      9,
      'slot "a" is listed twice',
    ],
    ["a model listed twice in a slot", [...right, ...right.slice(5)].join("\n"), 9, 'slot "a" lists model "m" twice'],
    [
      "a model of one engine listed again by another",
      [...right, "      - models: [n, m]", "        dialect: openai", "        launcher: external"].join("\n") +
        "\n        url: http://h:1",
      9,
      'slot "a" lists model "m" twice',
    ],
    [
      "one model and several",
      withLine(6, "      - model: m\n        models: [m, n]"),
      7,
      'slot "a", model "m": name "model" or "models", not both',
    ],
    [
      "an engine without a model",
      withLine(6, "      - maxConcurrent: 4"),
      6,
      'slot "a", model "": "model" is missing, or "models" for several',
    ],
    [
      "an adapter that the command does not have",
      [
        ...right.slice(0, 5),
        "      - models:",
        "          - base",
        "          - sqll",
        "        dialect: vllm",
        '        command: [vllm, serve, /m, --served-model-name, base, --enable-lora, --lora-modules, sql=/l, --port, "{port}"]',
      ].join("\n"),
      8,
      'slot "a", model "base": the command does not serve "sqll": name it in --served-model-name or --lora-modules. Did you mean "sql"?',
    ],
    [
      "a model that its engine serves by another name",
      withLine(8, '        command: [vllm, serve, /m, --served-model-name=other, --port, "{port}"]'),
      6,
      'slot "a", model "m": the command does not serve "m": name it in --served-model-name or --lora-modules.',
    ],
    [
      "adapters without the flag that lets vLLM load them",
      withLine(8, '        command: [vllm, serve, /m, --lora-modules, sql=/l, --port, "{port}"]'),
      8,
      'slot "a", model "m": --lora-modules needs --enable-lora',
    ],
    ["a GPU listed twice in a slot", withLine(4, "    gpus:\n      - 0\n      - 0"), 6, 'slot "a" lists GPU 0 twice'],
    ["no command", right.slice(0, 7).join("\n"), 6, 'slot "a", model "m": launcher process needs "command"'],
    [
      "a launcher without its key",
      withLine(8, "        launcher: systemd"),
      8,
      'slot "a", model "m": launcher systemd needs "unit"',
    ],
    [
      "a command that nobody could reach",
      withLine(8, "        command: [vllm, serve]"),
      8,
      'slot "a", model "m": the command names neither {port} nor {socket}: nobody could reach the engine',
    ],
    [
      "a unit that is no template",
      withLine(8, "        launcher: systemd\n        unit: weiche-engine.service"),
      9,
      'slot "a", model "m": unit "weiche-engine.service" is no template such as weiche-engine@.service',
    ],
    [
      "an address that is none",
      withLine(8, "        launcher: external\n        url: localhost:8000"),
      9,
      'slot "a", model "m": url "localhost:8000" is not http://host:port',
    ],
    [
      "a dialect that cannot sleep",
      withLine(7, "        dialect: openai\n        sleep: { level: 1 }"),
      8,
      'slot "a", model "m": only dialect vllm can sleep',
    ],
    [
      "an engine for everybody",
      withLine(8, '        command: [vllm, serve, --host, 0.0.0.0, --port, "{port}"]'),
      8,
      'slot "a", model "m": the engine would be reached from elsewhere at 0.0.0.0: 127.0.0.1',
    ],
    [
      "a router without a port",
      withLine(1, "node: n\nrouters:\n  - r1:7443\n  - r2"),
      4,
      'routers.1: "r2" is not host:port',
    ],
    [
      "a listener without a port",
      withLine(1, "node: n\nlisten:\n  ops: here"),
      3,
      'listen.ops: "here" is not host:port',
    ],
    [
      "a backoff upside down",
      withLine(4, "    backoffSeconds:\n      min: 9\n      max: 3"),
      5,
      'slot "a": backoffSeconds.min is over .max',
    ],
    [
      "more than all of what an engine held",
      withLine(4, "    memoryReturnShare: 75"),
      4,
      '"slots.0.memoryReturnShare" must be <= 1',
    ],
    [
      "two slots whose engines would share a name",
      [
        ...right.toSpliced(5, 1, "      - model: b-m"),
        "  - name: a-b",
        "    engines: [{ model: m, dialect: openai, launcher: external, url: http://h:1 }]",
      ].join("\n"),
      10,
      'slots "a" and "a-b" both make the engine name "a-b-m": rename one',
    ],
  ];
  test.each(cases)("%s", (_name, text, line, message) => {
    expect(checkAgentText(text).mistakes).toEqual([{ line, message }]);
  });

  test("and none hides another", () => {
    const text = [
      ...right.toSpliced(6, 2, "        dialect: openai", "        sleep: { level: 1 }"),
      ...right.slice(2),
    ].join("\n");
    expect(checkAgentText(text).mistakes.map(({ line }) => line)).toEqual([6, 8, 9]);
  });
});

function load(text: string): AgentConfig {
  const file = join(temporaryDirectory(), "agent.yaml");
  writeFileSync(file, text);
  return loadAgentConfig(file, {});
}

test("an agent does not start with a contradiction, and says where it stands", () => {
  expect(() => load([...right, ...right.slice(2)].join("\n"))).toThrow(/agent\.yaml:9: slot "a" is listed twice/);
});

test.each([
  ["", { roomMsMax: 30_000, makeRoomAfterMs: 3_000, returnMsMax: 10_000, returnShareMin: 0.75 }],
  [
    "    memorySeconds: { room: 60, spare: 5, return: 20 }\n    memoryReturnShare: 0.5",
    { roomMsMax: 60_000, makeRoomAfterMs: 5_000, returnMsMax: 20_000, returnShareMin: 0.5 },
  ],
])("a slot waits for GPU memory as its lines say: '%s'", (lines, memory) => {
  expect(load(withLine(4, lines)).slots[0]!.memory).toEqual(memory);
});
