import { expect, test } from "vitest";
import { locate } from "@weiche/shared/files/config-file.ts";
import { checkAgentText } from "../config/config.ts";
import { machineWarnings, type MachineFacts } from "./machine-warnings.ts";

const text = (gpus: string, memoryBytes: number) => `node: n
slots:
  - name: a
    gpus: [${gpus}]
    engines:
      - model: m
        dialect: llama-server
        command: [llama-server, -m, /models/m.gguf, -a, m, --port, "{port}"]
        memoryBytes: ${memoryBytes}
`;

const roomy = { mount: "/models", sizeBytes: 100, availableBytes: 50, inodes: 100, inodesFree: 50 };
const here: MachineFacts = { exists: () => true, isEmpty: () => false, fileSystem: () => roomy };

function warnings(given: string, facts: Partial<MachineFacts> = {}) {
  return locate(given, machineWarnings(checkAgentText(given).value!, "/etc/weiche", { ...here, ...facts }));
}

const gpu = (busAddress: string, memoryTotalBytes?: number) => ({
  ...{ busAddress, vendor: "AMD" },
  ...(memoryTotalBytes === undefined ? {} : { memoryTotalBytes }),
});
const machine = {
  ...{ memoryModules: [], disks: [], networkInterfaces: [] },
  gpus: [gpu("0000:03:00.0"), gpu("0000:c3:00.0", 190e9), gpu("0000:d3:00.0", 190e9)],
};

test("a model that is too large for GPUs that only the kernel lists is a warning", () => {
  expect(warnings(text("0", 190e9 + 1), { machine })).toEqual([
    {
      line: 9,
      message:
        'model "m": memoryBytes is 190000000001, but the slot\'s GPUs, counted by bus address (AMD), have 190000000000',
    },
  ]);
  expect(warnings(text("0", 190e9), { machine })).toEqual([]);
  expect(warnings(text("0, 1", 380e9), { machine })).toEqual([]);
  expect(warnings(text("0, 1", 380e9 + 1), { machine })).toHaveLength(1);
});

test("an unknown GPU and a slot without GPUs cause no warning", () => {
  expect(warnings(text("7", 1e15), { machine })).toEqual([]);
  expect(warnings(text("", 1e15), { machine })).toEqual([]);
  expect(warnings(text("0", 1e15))).toEqual([]);
});

test.each([
  ["bytes", { availableBytes: 4 }, "it has room for 4 bytes and 50 of 100 files"],
  ["files", { inodesFree: 4 }, "it has room for 50 bytes and 4 of 100 files"],
])("a model on a file system with few %s left is a warning", (_name, left, room) => {
  expect(warnings(text("", 1), { fileSystem: () => ({ ...roomy, ...left }) })).toEqual([
    { line: 8, message: `model "m": the file system /models of /models/m.gguf is nearly full: ${room}` },
  ]);
});

test("a missing model below an empty directory causes the question whether its file system is mounted", () => {
  const exists = (path: string) => path === "/models" || path === "/";
  expect(warnings(text("", 1), { exists, isEmpty: (path) => path === "/models" })).toEqual([
    { line: 8, message: 'model "m": /models is empty: is the file system of the models mounted?' },
  ]);
  expect(warnings(text("", 1), { exists })).toEqual([]);
  expect(warnings(text("", 1), { fileSystem: () => undefined })).toEqual([]);
});
