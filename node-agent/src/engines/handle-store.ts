/** Handles of running engines on disk, one JSON file each, so that the agent finds its engines again after a kill. */
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Value } from "typebox/value";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import { handleSchema, type EngineHandle } from "./engine.ts";
import { engineName } from "./engine-name.ts";

export interface HandleStoreEvents {
  /** A file in the directory is damaged or not a handle. It is left in place. */
  handleUnreadable(file: string, reason: string): void;
}

export type HandleStore = ReturnType<typeof createHandleStore>;

const transientCodes: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOMEM", "EIO"]);

export function createHandleStore(directory: string, events: HandleStoreEvents) {
  const fileOf = (slot: SlotName, model: ModelId) => `${engineName(slot, model)}.json`;
  const useOf = (slot: SlotName, model: ModelId) => join(directory, `${engineName(slot, model)}.use`);

  async function replace(file: string, text: string): Promise<void> {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(`${file}.tmp`, text, { mode: 0o600 });
    await rename(`${file}.tmp`, file);
  }

  async function readOne(file: string): Promise<EngineHandle | undefined> {
    try {
      const handle: unknown = JSON.parse(await readFile(join(directory, file), "utf8"));
      if (!Value.Check(handleSchema, handle)) throw new Error("not a handle");
      if (fileOf(handle.slot, handle.model) !== file) throw new Error("its name belongs to another engine");
      return handle;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // Otherwise the engine of an unreadable handle would count as a stray and be stopped.
      if (code !== undefined && transientCodes.has(code)) throw error;
      events.handleUnreadable(file, code ?? message);
      return undefined;
    }
  }

  return {
    /** Returns the handles of all slots. Rejects on transient errors, such as too many open files. */
    async read(): Promise<readonly EngineHandle[]> {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const files = (await readdir(directory)).filter((file) => !/\.(tmp|use)$/.test(file));
      const handles = await Promise.all(files.map(readOne));
      return handles.filter((handle) => handle !== undefined);
    },
    /** Resolves when the next agent would find the handle. Does not fsync: a power cut ends the engines too. */
    async write(handle: EngineHandle): Promise<void> {
      await replace(join(directory, fileOf(handle.slot, handle.model)), JSON.stringify(handle));
    },
    async remove(slot: SlotName, model: ModelId): Promise<void> {
      await rm(join(directory, fileOf(slot, model)), { force: true });
    },
    /** Returns the GPU memory in bytes that an engine with this command last held awake. It outlives the handle. */
    async readUse(slot: SlotName, model: ModelId, commandHash: string): Promise<number | undefined> {
      const [hash, bytes] = (await readFile(useOf(slot, model), "utf8").catch(() => "")).split(" ");
      return hash === commandHash && /^\d{1,15}$/.test(bytes ?? "") ? Number(bytes) : undefined;
    },
    async writeUse(slot: SlotName, model: ModelId, commandHash: string, usedBytes: number): Promise<void> {
      await replace(useOf(slot, model), `${commandHash} ${Math.round(usedBytes)}`);
    },
  };
}
