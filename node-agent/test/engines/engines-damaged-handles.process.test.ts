import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createRandom } from "@weiche/shared/random.ts";
import { faultEngine, isAlive, modelA } from "./engines-on-host.ts";
import { never, quiet, statePerTest } from "./engines-per-test.ts";

const state = statePerTest();
const rounds = process.env["WEICHE_NIGHTLY"] ? 60 : 12;

function damaged(content: Buffer, random: ReturnType<typeof createRandom>): Buffer {
  const kind = random.below(4);
  if (kind === 0) return content.subarray(0, random.below(content.length));
  if (kind === 1) return Buffer.alloc(random.below(300), random.below(256));
  const flipped = Buffer.from(content);
  const bit = random.below(content.length * 8);
  flipped[bit >> 3]! ^= 1 << (bit & 7);
  return flipped;
}

test(
  "an engine whose files on disk are damaged is adopted or stopped, and the slot serves requests",
  { timeout: 30_000 + rounds * 5_000 },
  async () => {
    const random = createRandom(3);
    const open = () => state.open({ engines: [faultEngine(modelA, [], { sleepLevel: 1 })] });
    const before = open();
    await before.engines.activate(modelA, never, quiet);
    await before.handles.writeUse("a" as never, modelA, "x".repeat(64), 8_589_934_592);
    before.close();
    const files = ["a-model-a.json", "a-model-a.use"].map((file) => join(state.directory, "engines", file));
    for (let round = 0; round < rounds; round++) {
      for (const file of files) await writeFile(file, damaged(await readFile(file), random));
      const seen = (await readFile(files[0]!)).toString("latin1");
      const { engines, handles, close } = open();
      const adopted = await engines.readopt();
      const groups = await state.engineGroups();
      expect([seen, groups.length]).toEqual([seen, adopted ? 1 : 0]);
      await engines.activate(modelA, never, quiet);
      const [handle] = await handles.read();
      expect(await isAlive(handle!.pid!)).toBe(true);
      expect(await state.engineGroups()).toHaveLength(1);
      await handles.writeUse("a" as never, modelA, "x".repeat(64), 8_589_934_592);
      close();
    }
  },
);
