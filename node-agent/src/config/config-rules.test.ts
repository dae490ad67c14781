import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { checkAgentText, loadAgentConfig, type AgentConfig } from "./config.ts";

/** A valid file, line by line. Each case changes or adds lines. */
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

test("a valid agent.yaml has no mistakes", () => {
  expect(checkAgentText(right.join("\n")).mistakes).toEqual([]);
});

describe("a mistake in agent.yaml is reported with its line and remedy", () => {
  const cases: [name: string, text: string, line: number, message: string][] = [
    ["a misspelled key", withLine(4, "    gpu: [0]"), 4, 'unknown key "slots.0.gpu"; did you mean "gpus"?'],
    [
      "a misspelled dialect",
      withLine(7, "        dialect: vlm"),
      7,
      '"slots.0.engines.0.dialect" must be one of vllm, llama-server, openai; did you mean "vllm"?',
    ],
    [
      "a misspelled action for requests [B7]",
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
      "a model of one engine listed again by another [B10]",
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
      "an adapter that is missing in the command [B10]",
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
      "a model that its engine serves under another name",
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
      "a command without an address",
      withLine(8, "        command: [vllm, serve]"),
      8,
      'slot "a", model "m": the command contains neither {port} nor {socket}, so no request could reach the engine',
    ],
    [
      "a unit that is not a template",
      withLine(8, "        launcher: systemd\n        unit: weiche-engine.service"),
      9,
      'slot "a", model "m": unit "weiche-engine.service" is not a template such as weiche-engine@.service',
    ],
    [
      "an invalid address",
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
      "an engine that other hosts can reach",
      withLine(8, '        command: [vllm, serve, --host, 0.0.0.0, --port, "{port}"]'),
      8,
      'slot "a", model "m": other hosts could reach the engine at 0.0.0.0: use 127.0.0.1',
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
      "a backoff whose minimum exceeds its maximum",
      withLine(4, "    backoffSeconds:\n      min: 9\n      max: 3"),
      5,
      'slot "a": backoffSeconds.min exceeds .max',
    ],
    ["a share above 1", withLine(4, "    memoryReturnShare: 75"), 4, '"slots.0.memoryReturnShare" must be <= 1'],
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

  test("no mistake hides another", () => {
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

test("an agent with contradicting settings does not start, and names their place", () => {
  expect(() => load([...right, ...right.slice(2)].join("\n"))).toThrow(/agent\.yaml:9: slot "a" is listed twice/);
});

test.each([
  ["", { roomMsMax: 30_000, makeRoomAfterMs: 3_000, returnMsMax: 10_000, returnShareMin: 0.75 }],
  [
    "    memorySeconds: { room: 60, spare: 5, return: 20 }\n    memoryReturnShare: 0.5",
    { roomMsMax: 60_000, makeRoomAfterMs: 5_000, returnMsMax: 20_000, returnShareMin: 0.5 },
  ],
])("a slot waits for GPU memory as configured: '%s'", (lines, memory) => {
  expect(load(withLine(4, lines)).slots[0]!.memory).toEqual(memory);
});
