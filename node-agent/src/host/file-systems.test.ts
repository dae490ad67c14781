import { statSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { readFileSystems } from "./file-systems.ts";

let directory: string;
beforeEach(() => void (directory = temporaryDirectory()));

test("a file system with several kept paths is listed once, by its mount point", () => {
  const model = join(directory, "m.gguf");
  writeFileSync(model, "");
  const [found, ...others] = readFileSystems([
    { path: model, holds: "models" },
    { path: join(directory, "outbox"), holds: "outbox" },
    { path: directory, holds: "state" },
  ]);
  expect(others).toEqual([]);
  expect(found).toMatchObject({ holds: ["models", "state"] });
  expect(directory.startsWith(found!.mount)).toBe(true);
  expect(statSync(found!.mount).dev).toBe(statSync(directory).dev);
  const { bsize, blocks } = statfsSync(directory);
  expect(found!.sizeBytes).toBe(bsize * blocks);
  expect(found!.availableBytes).toBeGreaterThan(0);
  expect(found!.availableBytes).toBeLessThanOrEqual(found!.sizeBytes);
});

test("a file system without inodes has no count of them, and a missing path has no file system", () => {
  const [proc] = readFileSystems([{ path: "/proc/self", holds: "state" }]);
  expect(proc).toMatchObject({ mount: "/proc", holds: ["state"] });
  expect(proc!.inodes).toBeUndefined();
  expect(readFileSystems([{ path: join(directory, "no"), holds: "models" }])).toEqual([]);
});
