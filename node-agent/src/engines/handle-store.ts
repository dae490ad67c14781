/** Handles of running engines on disk, one JSON file each, so that an agent that was killed finds its engines again. */
import { mkdir, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Type } from "typebox";
import { Value } from "typebox/value";
import type { ModelId, SlotName } from "@weiche/shared/ids.ts";
import type { EngineHandle } from "./engine.ts";
import { engineName } from "./engine-name.ts";

export interface HandleStoreEvents {
  /** A file in the handles' directory that is not one of ours, or is damaged. It stays where it is. */
  handleUnreadable(file: string, reason: string): void;
}

export interface HandleStore {
  /** Handles of all slots. Rejects where the host cannot read them now, as for want of file descriptors. */
  read(): Promise<readonly EngineHandle[]>;
  /** Resolves when the next agent would find it. Nothing is synced: a power cut ends the engines too. */
  write(handle: EngineHandle): Promise<void>;
  /** Harmless when there is none. */
  remove(slot: SlotName, model: ModelId): Promise<void>;
  /** GPU memory that an engine with this command was last seen to hold awake. Kept also when its handle is gone. */
  readUse(slot: SlotName, model: ModelId, commandHash: string): Promise<number | undefined>;
  writeUse(slot: SlotName, model: ModelId, commandHash: string, usedBytes: number): Promise<void>;
}

/** A pid is a number that gets signals: 0, 1 and negative ones would reach others than the engine. */
const handleSchema = Type.Object({
  slot: Type.String(),
  model: Type.String(),
  launcher: Type.Enum(["process", "systemd", "external"]),
  endpoint: Type.Object({ origin: Type.String(), socketPath: Type.Optional(Type.String()) }),
  pid: Type.Optional(Type.Integer({ minimum: 2 })),
  startTicks: Type.Optional(Type.Integer({ minimum: 0 })),
  commandHash: Type.Optional(Type.String()),
  nonce: Type.Optional(Type.String()),
  unit: Type.Optional(Type.String()),
  asleep: Type.Boolean(),
  heading: Type.Optional(Type.Enum(["asleep", "awake"])),
  asleepSinceMs: Type.Optional(Type.Number()),
  loadingSinceMs: Type.Optional(Type.Number()),
});

/** Errors of a read that say nothing of the file. */
const passing: ReadonlySet<string> = new Set(["EMFILE", "ENFILE", "ENOMEM", "EIO"]);

export function createHandleStore(directory: string, events: HandleStoreEvents): HandleStore {
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
      const known = handle as EngineHandle;
      if (fileOf(known.slot, known.model) !== file) throw new Error("its name belongs to another engine");
      return known;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // The engine of a handle that only cannot be read now would be taken for one without.
      if (code !== undefined && passing.has(code)) throw error;
      events.handleUnreadable(file, code ?? message);
      return undefined;
    }
  }

  return {
    async read() {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const files = (await readdir(directory)).filter((file) => !/\.(tmp|use)$/.test(file));
      const handles = await Promise.all(files.map(readOne));
      return handles.filter((handle) => handle !== undefined);
    },
    async write(handle) {
      await replace(join(directory, fileOf(handle.slot, handle.model)), JSON.stringify(handle));
    },
    async remove(slot, model) {
      await rm(join(directory, fileOf(slot, model)), { force: true });
    },
    async readUse(slot, model, commandHash) {
      const [hash, bytes] = (await readFile(useOf(slot, model), "utf8").catch(() => "")).split(" ");
      return hash === commandHash && /^\d{1,15}$/.test(bytes ?? "") ? Number(bytes) : undefined;
    },
    async writeUse(slot, model, commandHash, usedBytes) {
      await replace(useOf(slot, model), `${commandHash} ${Math.round(usedBytes)}`);
    },
  };
}
