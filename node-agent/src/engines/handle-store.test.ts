import { readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { asId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import type { EngineHandle } from "./engine.ts";
import { createHandleStore, type HandleStore } from "./handle-store.ts";

let directory: string;
let store: HandleStore;
let unreadable: string[];

beforeEach(() => {
  directory = join(temporaryDirectory(), "engines");
  unreadable = [];
  store = createHandleStore(directory, { handleUnreadable: (file, reason) => unreadable.push(`${file}: ${reason}`) });
});

const handle: EngineHandle = {
  slot: asId<SlotName>("a"),
  model: asId<ModelId>("org/model 3"),
  launcher: "process",
  endpoint: { origin: "http://127.0.0.1:4711" },
  pid: 4711,
  startTicks: 123_456,
  commandHash: "abc",
  nonce: "0b8ae7b2-6b7c-4a6e-9d9c-0d5f3c1c2f10",
  asleep: false,
};

test("a handle is read as it was written, under a name that any file system accepts", async () => {
  expect(await store.read()).toEqual([]);
  await store.write(handle);
  await store.write({ ...handle, asleep: true });
  expect(await store.read()).toEqual([{ ...handle, asleep: true }]);
  expect(await readdir(directory)).toEqual(["a-org\\x2fmodel\\x203.json"]);
  expect((await stat(join(directory, "a-org\\x2fmodel\\x203.json"))).mode & 0o777).toBe(0o600);
});

test("a removed handle is gone, and a second removal does no harm", async () => {
  await store.write(handle);
  await store.remove(handle.slot, handle.model);
  await store.remove(handle.slot, handle.model);
  expect(await store.read()).toEqual([]);
});

test("the memory of an engine is known after its handle is gone, only for the same command, and is not a handle", async () => {
  const { slot, model } = handle;
  expect(await store.readUse(slot, model, "abc")).toBeUndefined();
  await store.write(handle);
  await store.writeUse(slot, model, "abc", 4711.4);
  await store.remove(slot, model);
  expect([await store.readUse(slot, model, "abc"), await store.readUse(slot, model, "abd")]).toEqual([4711, undefined]);
  expect([await store.read(), unreadable]).toEqual([[], []]);
  const [file] = await readdir(directory);
  await writeFile(join(directory, file!), "abc -1");
  expect(await store.readUse(slot, model, "abc")).toBeUndefined();
});

test.each([
  ["a torn one", `{"slot":"a","mod`, /JSON/],
  ["one with a pid that would reach every process", JSON.stringify({ ...handle, pid: -1 }), /not a handle/],
  ["one with the agent's own group as pid", JSON.stringify({ ...handle, pid: 0 }), /not a handle/],
  ["one of another engine", JSON.stringify({ ...handle, slot: "b" }), /belongs to another engine/],
])("%s is reported, ignored and left in place", async (_what, text, reason) => {
  await store.write(handle);
  const [file] = await readdir(directory);
  await writeFile(join(directory, file!), text);
  expect(await store.read()).toEqual([]);
  expect(unreadable).toEqual([expect.stringMatching(reason)]);
  expect(await readdir(directory)).toEqual([file]);
});

test("a handle that cannot be read now fails the reading, because its engine would otherwise count as a stray", async () => {
  await store.write(handle);
  const file = join(directory, (await readdir(directory))[0]!);
  await rm(file);
  await symlink("/proc/self/mem", file);
  await expect(store.read()).rejects.toThrow("EIO");
  expect(unreadable).toEqual([]);
});

test("a file that a killed agent left half written is not a handle, and does no harm", async () => {
  await store.write(handle);
  const [file] = await readdir(directory);
  await writeFile(join(directory, `${file}.tmp`), "{");
  expect(await store.read()).toEqual([handle]);
  expect(unreadable).toEqual([]);
});
