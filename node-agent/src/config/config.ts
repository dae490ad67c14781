/** The agent's configuration: one pure function of YAML text and environment, checked once before anything listens. */
import { dirname, join, resolve } from "node:path";
import { checkYaml, loadYaml, type Checked } from "@weiche/shared/files/config-file.ts";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import type { MemoryLimits } from "../engines/slot-memory.ts";
import { asId, type ModelId, type NodeId, type SlotName } from "@weiche/shared/ids.ts";
import type { TlsPaths } from "@weiche/shared/http/tls-files.ts";
import { parseOwnListen } from "@weiche/shared/http/listen.ts";
import { checkPrivate } from "@weiche/shared/files/private-file.ts";
import { readOpsConfig, type OpsConfig } from "@weiche/shared/program/ops-access.ts";
import { contradictions } from "./config-rules.ts";
import { nameOf } from "./engine-models.ts";
import { modelPaths } from "./engine-command-rules.ts";
import { secretOf } from "./config-secrets.ts";
import { agentSchema, type RawAgent, type RawEngine } from "./config-schema.ts";
import type { EngineSpec, LauncherSpec } from "../engines/engine.ts";

export interface SlotConfig {
  readonly name: SlotName;
  /** GPU indexes. On a host without GPUs they are only labels. */
  readonly gpus: readonly number[];
  readonly engines: readonly EngineSpec[];
  readonly limits: SlotLimits;
  readonly memory: MemoryLimits;
}

/** Limits that users can observe. */
export type SlotLimits = Readonly<ReturnType<typeof limitsOf>>;

export interface AgentConfig {
  readonly node: NodeId;
  readonly routers: readonly string[];
  readonly tls?: TlsPaths;
  readonly slots: readonly SlotConfig[];
  /** The files and directories of models that the engines' commands name. */
  readonly modelPaths: readonly string[];
  /** `agent/` in the data directory: lock, admin socket, outbox, engine handles and engine logs. */
  readonly stateDir: string;
  readonly ops: OpsConfig;
  readonly requestMsMax: number;
  /** How long running streams may continue after SIGTERM. */
  readonly shutdownMsMax: number;
  /** How long usage records are kept after their commit, in case the database loses commits. */
  readonly usageKeepMs: number;
  readonly logLevel: string;
}

/** Reads and checks the file that `WEICHE_AGENT_CONFIG` names. Throws a `StartError` with all mistakes. */
export function loadAgentConfig(file: string, env: NodeJS.ProcessEnv): AgentConfig {
  const raw = loadYaml(file, agentSchema, contradictions);
  const secret = secretOf(raw);
  if (secret !== undefined) checkPrivate(file, secret);
  return toConfig(raw, dirname(resolve(file)), env);
}

export function checkAgentText(text: string): Checked<RawAgent> {
  return checkYaml(text, agentSchema, contradictions);
}

function toConfig(raw: RawAgent, baseDir: string, env: NodeJS.ProcessEnv): AgentConfig {
  const dataDir = dataDirectory(env, raw.dataDir === undefined ? undefined : resolve(baseDir, raw.dataDir));
  const tls = raw.tls && {
    cert: resolve(baseDir, raw.tls.cert),
    key: resolve(baseDir, raw.tls.key),
    ca: resolve(baseDir, raw.tls.ca),
  };
  return {
    node: asId<NodeId>(raw.node),
    routers: raw.routers ?? [env["WEICHE_NODES_LISTEN"] ?? "127.0.0.1:7443"],
    tls,
    slots: raw.slots.map((slot) => ({
      name: asId<SlotName>(slot.name),
      gpus: slot.gpus,
      engines: slot.engines.map((engine) => toEngine(engine, slot.gpus, baseDir)),
      limits: limitsOf(slot),
      memory: {
        roomMsMax: slot.memorySeconds.room * 1000,
        makeRoomAfterMs: slot.memorySeconds.spare * 1000,
        returnMsMax: slot.memorySeconds.return * 1000,
        returnShareMin: slot.memoryReturnShare,
      },
    })),
    modelPaths: raw.slots.flatMap(({ engines }) => engines.flatMap((engine) => modelPathsOf(engine, baseDir))),
    stateDir: join(dataDir, "agent"),
    ops: readOpsConfig(
      parseOwnListen(env["WEICHE_AGENT_OPS_LISTEN"] ?? raw.listen.ops, "listen.ops or WEICHE_AGENT_OPS_LISTEN"),
      raw.ops,
      baseDir,
    ),
    requestMsMax: raw.requestSeconds * 1000,
    shutdownMsMax: raw.shutdownSeconds * 1000,
    usageKeepMs: raw.usageKeepHours * 3_600_000,
    logLevel: env["WEICHE_LOG_LEVEL"] ?? raw.logLevel,
  };
}

/** Returns the model paths of an engine, resolved against the directory in which it is started. */
export function modelPathsOf(engine: RawEngine, baseDir: string): readonly string[] {
  return modelPaths(engine).map((path) => resolve(baseDir, engine.directory ?? ".", path));
}

/** docs/configuration.md documents the defaults. */
function limitsOf(slot: RawAgent["slots"][number]) {
  return {
    minResidencyMs: slot.minResidencySeconds * 1000,
    drainOpenMsMax: slot.drainOpenSeconds * 1000,
    waitersMax: slot.waitersMax,
    waiterMsMax: slot.waiterSeconds * 1000,
    backoffMsMin: slot.backoffSeconds.min * 1000,
    backoffMsMax: slot.backoffSeconds.max * 1000,
    startMsMax: slot.startSeconds * 1000,
    stopMsMax: slot.stopSeconds * 1000,
    whileSwitching: slot.whileSwitching,
  };
}

function toEngine(raw: RawEngine, gpus: readonly number[], baseDir: string): EngineSpec {
  return {
    model: asId<ModelId>(nameOf(raw)),
    models: raw.models?.map((model) => asId<ModelId>(model)),
    dialect: raw.dialect,
    launcher: launcherOf(raw, gpus, baseDir),
    sleepLevel: raw.sleep?.level,
    maxConcurrent: raw.maxConcurrent,
    cachePrompts: raw.cachePrompts,
    silentMsMax: raw.silentSeconds === undefined ? undefined : raw.silentSeconds * 1000,
    memoryBytes: raw.memoryBytes,
  };
}

function launcherOf(raw: RawEngine, gpus: readonly number[], baseDir: string): LauncherSpec {
  const env = { ...(gpus.length > 0 ? { CUDA_VISIBLE_DEVICES: gpus.join(",") } : {}), ...raw.env };
  switch (raw.launcher) {
    case "external":
      return { kind: "external", url: raw.url! };
    case "systemd":
      return { kind: "systemd", unit: raw.unit!, env };
    case "process":
      return { kind: "process", command: raw.command!, env, directory: resolve(baseDir, raw.directory ?? ".") };
  }
}
