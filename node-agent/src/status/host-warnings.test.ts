import { expect, test } from "vitest";
import { locate } from "@weiche/shared/files/config-file.ts";
import { checkAgentText } from "../config/config.ts";
import { hostMistakes, hostWarnings } from "./host-warnings.ts";

const text = `node: gpu-1
routers: ["router1.example:7443"]
tls:
  cert: node.pem
  key: /keys/node.key
  ca: ca.pem
slots:
  - name: a
    gpus: [0, 4]
    engines:
      - model: m
        dialect: vllm
        command: [/opt/vllm/bin/vllm, serve, --host, 127.0.0.1, --port, "{port}"]
        directory: work
      - model: n
        dialect: vllm
        launcher: external
        url: http://127.0.0.1:8000
        env: { A: "1" }
      - model: o
        dialect: vllm
        command: [vllm, serve, --host, 127.0.0.1, --port, "{port}"]
`;

function warnings(given: string, there: readonly string[], gpus?: readonly number[]) {
  const { value } = checkAgentText(given);
  const host = {
    exists: (path: string) => there.includes(path),
    gpus: gpus?.map((index) => ({ index, memoryTotalBytes: 80e9 })),
  };
  return locate(given, hostWarnings(value!, "/etc/weiche", host));
}

const all = ["/etc/weiche", "/etc/weiche/node.pem", "/keys/node.key", "/etc/weiche/ca.pem", "/etc/weiche/work"];

test("files, programs and GPUs that the host lacks are warnings with their line", () => {
  expect(warnings(text, ["/etc/weiche", "/etc/weiche/ca.pem"], [0, 1])).toEqual([
    { line: 9, message: "GPU 4 does not exist on this host, which has 0, 1" },
    { line: 13, message: 'model "m": the program /opt/vllm/bin/vllm does not exist' },
    { line: 14, message: 'model "m": the directory work does not exist' },
    {
      line: 18,
      message:
        'model "n": not visible in this command: make sure that its vLLM was started with VLLM_MAX_STOP_STRINGS=64',
    },
    { line: 19, message: 'model "n": launcher external ignores "env"' },
  ]);
});

test("a missing model file is a warning, and its path is relative to the engine's directory", () => {
  const engine = (model: string) =>
    `node: n\nslots:\n  - name: a\n    engines:\n      - model: m\n        dialect: llama-server\n        directory: work\n        command: [llama-server, -m, ${model}, -a, m, --metrics, --embeddings, --port, "{port}", --host, 127.0.0.1]\n`;
  expect(warnings(engine("m.gguf"), all)).toEqual([{ line: 8, message: 'model "m": the model m.gguf does not exist' }]);
  expect(warnings(engine("m.gguf"), [...all, "/etc/weiche/work/m.gguf"])).toEqual([]);
});

test("a host that has every file and GPU causes no warnings about them", () => {
  expect(warnings(text, [...all, "/opt/vllm/bin/vllm"], [0, 4]).map(({ line }) => line)).toEqual([18, 19]);
});

test("on a host without GPUs, a warning says that GPU numbers are only labels", () => {
  expect(warnings(text, [...all, "/opt/vllm/bin/vllm"]).map(({ message }) => message)).toContain(
    "GPU 0: nvidia-smi shows no GPUs on this host; the number is only a label here",
  );
});

test("a router that is not on loopback causes a warning if it has no certificates", () => {
  const plain = text.replace(/tls:\n(?: {2}.*\n){3}/, "");
  expect(warnings(plain, all, [0, 4])[0]).toEqual({
    line: 2,
    message: "a router beyond loopback accepts only nodes with certificates: set tls",
  });
});

test("slots that together need more memory than their GPU has are a warning", () => {
  const slot = (name: string, needs: string) =>
    `  - name: ${name}\n    gpus: [0]\n    engines:\n      - { model: ${name}, dialect: openai, command: [e, "{port}"], memoryBytes: ${needs} }\n`;
  const shared = (second: string) => `node: n\nslots:\n${slot("a", "50000000000")}${slot("b", second)}`;
  expect(warnings(shared("30000000000"), all, [0])).toEqual([]);
  expect(warnings(shared("40000000000"), all, [0])).toEqual([
    { line: 8, message: "the slots of GPU 0 need 90000000000 bytes (memoryBytes), but it has 80000000000" },
  ]);
});

const needing = (gpus: string, memoryBytes: string) => `node: n
slots:
  - name: a
    gpus: [${gpus}]
    engines:
      - { model: small, dialect: openai, command: [e, "{port}"], memoryBytes: 80000000000 }
      - model: m
        dialect: openai
        command: [e, "{port}"]
        memoryBytes: ${memoryBytes}
`;

test.each([
  ["a GPU that is too small", "0", "80000000001", [80e9], 80e9],
  ["a GPU that it fills", "0", "80000000000", [80e9], undefined],
  ["GPUs that are too small together", "0, 1", "120000000001", [80e9, 40e9], 120e9],
  ["GPUs that it fills together", "0, 1", "120000000000", [80e9, 40e9], undefined],
  ["a GPU that does not say how much it has", "0, 1", "800000000000", [80e9, undefined], undefined],
  ["a missing GPU", "0, 4", "800000000000", [80e9], undefined],
  ["no GPU", "", "800000000000", [80e9], undefined],
  ["a host without GPUs", "0", "800000000000", undefined, undefined],
])("a model on %s", (_name, gpus, memoryBytes, totals, tooFew) => {
  const given = needing(gpus, memoryBytes);
  const there = totals?.map((memoryTotalBytes, index) => ({
    index,
    ...(memoryTotalBytes ? { memoryTotalBytes } : {}),
  }));
  const found = locate(given, hostMistakes(checkAgentText(given).value!, { exists: () => true, gpus: there }));
  const message = `model "m" never fits: memoryBytes is ${memoryBytes}, but the slot's GPUs have ${tooFew}`;
  expect(found).toEqual(tooFew === undefined ? [] : [{ line: 10, message }]);
});
