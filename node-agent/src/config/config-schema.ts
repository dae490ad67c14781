/** Schema of agent.yaml: names, types, ranges. deploy/CONFIGURE.md explains every key. */
import { namePattern } from "@weiche/shared/ids.ts";
import { opsSchema } from "@weiche/shared/program/ops-access.ts";
import { Type, type Static } from "typebox";

const closed = { additionalProperties: false } as const;
const seconds = Type.Number({ minimum: 0 });
const name = Type.String({ pattern: namePattern.source });

const engineSchema = Type.Object(
  {
    model: Type.String({ minLength: 1 }),
    dialect: Type.Enum(["vllm", "llama-server", "openai"]),
    launcher: Type.Optional(Type.Enum(["process", "systemd", "external"])),
    command: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    env: Type.Optional(Type.Record(Type.String(), Type.String())),
    directory: Type.Optional(Type.String()),
    unit: Type.Optional(Type.String()),
    url: Type.Optional(Type.String()),
    sleep: Type.Optional(Type.Object({ level: Type.Enum([1, 2]) }, closed)),
    maxConcurrent: Type.Optional(Type.Integer({ minimum: 1 })),
    cachePrompts: Type.Optional(Type.Enum(["per-account", "shared", "off"])),
    memoryBytes: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  closed,
);

const slotSchema = Type.Object(
  {
    name,
    gpus: Type.Optional(Type.Array(Type.Integer({ minimum: 0 }))),
    minResidencySeconds: Type.Optional(seconds),
    drainOpenSeconds: Type.Optional(seconds),
    waitersMax: Type.Optional(Type.Integer({ minimum: 1 })),
    waiterSeconds: Type.Optional(seconds),
    startSeconds: Type.Optional(seconds),
    stopSeconds: Type.Optional(seconds),
    memorySeconds: Type.Optional(
      Type.Object(
        { room: Type.Optional(seconds), spare: Type.Optional(seconds), return: Type.Optional(seconds) },
        closed,
      ),
    ),
    memoryReturnShare: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    backoffSeconds: Type.Optional(Type.Object({ min: seconds, max: seconds }, closed)),
    engines: Type.Array(engineSchema, { minItems: 1 }),
  },
  closed,
);

export const agentSchema = Type.Object(
  {
    node: name,
    routers: Type.Optional(Type.Array(Type.String(), { minItems: 1 })),
    tls: Type.Optional(Type.Object({ cert: Type.String(), key: Type.String(), ca: Type.String() }, closed)),
    slots: Type.Array(slotSchema, { minItems: 1 }),
    dataDir: Type.Optional(Type.String()),
    listen: Type.Optional(Type.Object({ ops: Type.Optional(Type.String()) }, closed)),
    ops: Type.Optional(opsSchema),
    requestSeconds: Type.Optional(seconds),
    shutdownSeconds: Type.Optional(seconds),
    usageKeepHours: Type.Optional(Type.Number({ minimum: 1 })),
    logLevel: Type.Optional(Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"])),
  },
  closed,
);

export type RawAgent = Static<typeof agentSchema>;
export type RawEngine = Static<typeof engineSchema>;
