/**
 * Schema of agent.yaml: names, types, ranges, and what each key means, from which `node deploy/configure-page.ts` makes the
 * table in deploy/CONFIGURE.md. A `default` is the value that an absent key has; `absent` says in words what holds then.
 */
import { namePattern } from "@weiche/shared/ids.ts";
import { opsSchema } from "@weiche/shared/program/ops-access.ts";
import { enginesPerSlotMax, modelCharactersMax, slotsMax } from "@weiche/shared/wire/link-bounds.ts";
import { Type, type Static } from "typebox";

const closed = { additionalProperties: false } as const;

function name(description: string) {
  return Type.String({ pattern: namePattern.source, description });
}

function text(description: string, options: { readonly absent?: string; readonly default?: string } = {}) {
  return Type.String({ description, ...options });
}

function modelId(description: string, absent?: string) {
  return Type.String({ minLength: 1, maxLength: modelCharactersMax, description, ...(absent && { absent }) });
}

/** May be absent. */
function seconds(description: string, whenAbsent: number) {
  return Type.Optional(Type.Number({ minimum: 0, default: whenAbsent, description: `${description}, in seconds` }));
}

const engineSchema = Type.Object(
  {
    model: Type.Optional(modelId("the model's id in the catalogue, under which the engine serves it", "with `models`")),
    models: Type.Optional(
      Type.Array(modelId("such an id"), {
        minItems: 1,
        maxItems: enginesPerSlotMax,
        description:
          "in place of `model`, the ids of several models that the engine serves at the same time, such as a base model and its LoRA adapters. They share the engine's places, and a request for any of them needs no switch. The first id names the engine in files, logs and metrics. [An example](INSTALL.md#several-models-on-one-engine)",
        absent: "the engine serves `model` alone",
      }),
    ),
    dialect: Type.Enum(["vllm", "llama-server", "openai"], {
      description: "how the engine is spoken to; `openai`: the embedded engine, SGLang, TEI and others",
    }),
    launcher: Type.Optional(
      Type.Enum(["process", "systemd", "external"], {
        default: "process",
        description:
          "how the engine is started: `process` needs `command`, `systemd` needs `unit`, `external` needs `url`",
      }),
    ),
    command: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 1,
        description: "program and arguments; `{port}` and `{socket}` are filled in",
        absent: "with another launcher",
      }),
    ),
    env: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description:
          "variables of the engine. `CUDA_VISIBLE_DEVICES` follows `gpus`; `VLLM_MAX_STOP_STRINGS` is 64, as many as the API takes, unless `env` says otherwise (an `external` vLLM, or one in a container, takes 4 unless you start it with that)",
        absent: "none of yours",
      }),
    ),
    directory: Type.Optional(
      text("where `command` runs, relative to the file", { absent: "the directory of the file" }),
    ),
    unit: Type.Optional(
      text("the [unit](INSTALL.md#engines-as-units-of-their-own) of the engine", { absent: "with another launcher" }),
    ),
    url: Type.Optional(text("address of an engine that is started elsewhere", { absent: "with another launcher" })),
    sleep: Type.Optional(
      Type.Object(
        {
          level: Type.Enum([1, 2], {
            description:
              "vLLM sleeps instead of being stopped; no other engine can ([why not SGLang](decisions/0005-sglang-does-not-sleep.md))",
          }),
        },
        {
          ...closed,
          description: "what happens to the engine when another model gets the slot",
          absent: "it is stopped",
        },
      ),
    ),
    maxConcurrent: Type.Optional(
      Type.Integer({
        minimum: 1,
        default: 256,
        description:
          "the engine's places, most answers at once: as many as the engine runs, since a request in its own queue can neither be moved nor taken back promptly (vLLM `--max-num-seqs`, llama-server `-np`, the embedded engine `--parallel`). A request with `n` takes `n` of them. llama-server says how many slots it has: never more than those, and only as many as can be full if they [share one context](decisions/0016-places.md)",
      }),
    ),
    cachePrompts: Type.Optional(
      Type.Enum(["per-account", "shared", "off"], {
        description:
          "whose prompts an engine may find again in its cache. `shared` is for the engine of one customer: `cached_tokens` and the time to the first token tell one account what another has sent. llama-server has no salt: with `per-account` and `off` it reads each prompt anew. With dialect `openai`, `per-account` holds where the engine keeps to `cache_salt`, as the embedded engine and SGLang do; switch off the cache of any other ([decision 15](decisions/0015-what-engines-keep-of-prompts.md))",
        absent: "`per-account`",
      }),
    ),
    silentSeconds: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description:
          "an engine that owes an answer and shows no sign of life for so long, in seconds, counts as hanging: its request fails, and it is restarted. A sign of life is an event with output or progress in any of its streams, or a counter of work in its `/metrics` that moves; comments and `/health` are none",
        absent:
          "60, at most half of `requestSeconds`; an engine without counters of work that sends no progress while it reads a prompt (dialect `openai`, embeddings of llama-server) has the time that a request may take",
      }),
    ),
    memoryBytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "GPU memory that must be free before the engine starts or wakes; too little of it stops sleeping engines, and refuses a start only where a foreign process is in the way",
        absent: "what it held the last time, once that was measured",
      }),
    ),
  },
  closed,
);

const slotSchema = Type.Object(
  {
    name: name("the slot's name"),
    gpus: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0 }), {
        default: [],
        description:
          "the GPUs that hold one active model at a time, by their index; on a host without GPUs labels only",
      }),
    ),
    minResidencySeconds: seconds("how long a model that became active keeps the slot, even idle", 1),
    drainOpenSeconds: seconds(
      "how long the old model still takes new requests after another was asked for, or after it became active if that was later",
      10,
    ),
    waitersMax: Type.Optional(
      Type.Integer({
        minimum: 1,
        default: 512,
        description: "held requests for each model, whether they wait for a switch or for a place",
      }),
    ),
    waiterSeconds: seconds("how long a request is held", 300),
    whileSwitching: Type.Optional(
      Type.Enum(["hold", "refuse"], {
        default: "hold",
        description:
          "what happens to a request whose model is about to leave the slot: it is held for the model's next turn where it will come within `waiterSeconds` and within its own time, or refused with 503 `model_switching` until the model is gone",
      }),
    ),
    startSeconds: seconds("deadline of an engine's start", 900),
    stopSeconds: seconds("deadline of an engine's stop", 120),
    memorySeconds: Type.Optional(
      Type.Object(
        {
          room: seconds("how long a start waits for free GPU memory", 30),
          spare: seconds("after how long a sleeping engine is stopped to make room", 3),
          return: seconds("how long the GPU memory of an engine that went away may take to come back", 10),
        },
        closed,
      ),
    ),
    memoryReturnShare: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1,
        default: 0.75,
        description:
          "how much of what an engine held must be free again before its memory counts as come back; lower it for sleepers that keep more than a quarter",
      }),
    ),
    backoffSeconds: Type.Optional(
      Type.Object(
        {
          min: Type.Number({ minimum: 0, description: "the first pause, in seconds; each next one is twice as long" }),
          max: Type.Number({ minimum: 0, description: "the longest pause, in seconds" }),
        },
        {
          ...closed,
          description: "pauses after a failed start, and after the second exit or hang in a row",
          default: { min: 2, max: 30 },
        },
      ),
    ),
    engines: Type.Array(engineSchema, { minItems: 1, maxItems: enginesPerSlotMax }),
  },
  closed,
);

export const agentSchema = Type.Object(
  {
    node: name("the node's name; with TLS also the DNS name in its certificate"),
    routers: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 1,
        description:
          "`host:port` of `listen.nodes` of routers: of one that is there when the agent starts, better of two, or a name that leads to all. They tell of the others (`nodes.announce`)",
        absent: "`WEICHE_NODES_LISTEN`, or `127.0.0.1:7443`",
      }),
    ),
    tls: Type.Optional(
      Type.Object(
        {
          cert: text("file of the node's certificate chain"),
          key: text("file of its private key"),
          ca: text("file of the authority that signed the router's certificate"),
        },
        { ...closed, description: "mutual TLS towards routers", absent: "routers on loopback only" },
      ),
    ),
    slots: Type.Array(slotSchema, { minItems: 1, maxItems: slotsMax }),
    dataDir: Type.Optional(text("the data directory, as `WEICHE_DATA_DIR`", { absent: "`data` in the project" })),
    listen: Type.Optional(
      Type.Object(
        {
          ops: Type.Optional(
            text(
              "`host:port` of metrics and health, the agent's only listener; beyond loopback it needs `ops.tls` or `ops.tokenFile`",
              { default: "127.0.0.1:9465" },
            ),
          ),
        },
        closed,
      ),
    ),
    ops: Type.Optional(opsSchema),
    requestSeconds: seconds("the longest that a request may take", 600),
    shutdownSeconds: seconds("how long running answers may go on after SIGTERM", 600),
    usageKeepHours: Type.Optional(
      Type.Number({
        minimum: 1,
        default: 1,
        description:
          "least hours for which usage records stay on the node once a router has committed them; whole files of 4 MiB are removed. A database that was restored from a [backup](RUNBOOK.md#backup-and-restore) gets them again, so that no usage since the backup is lost if this is longer than the time between two backups. A record has about 200 bytes",
      }),
    ),
    logLevel: Type.Optional(
      Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"], {
        default: "info",
        description: "what is logged: this level and those above it",
      }),
    ),
  },
  closed,
);

export type RawAgent = Static<typeof agentSchema>;
export type RawEngine = Static<typeof engineSchema>;
