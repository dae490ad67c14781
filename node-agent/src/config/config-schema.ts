/**
 * The schema of agent.yaml: names, types, ranges, and the meaning of each key. `node docs/tools/configure-page.ts` makes
 * tables of it. A missing key gets its `default`. `absent` describes in words what applies if the key is absent.
 */
import { namePattern } from "@weiche/shared/ids.ts";
import { opsSchema } from "@weiche/shared/program/ops-access.ts";
import { enginesPerSlotMax, modelCharactersMax, slotsMax } from "@weiche/shared/wire/link-bounds.ts";
import { Type, type Static } from "typebox";
import { dialectNames } from "../engines/engine.ts";

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

function seconds(description: string, byDefault: number) {
  return Type.Number({ minimum: 0, default: byDefault, description: `${description}, in seconds` });
}

const engineSchema = Type.Object(
  {
    model: Type.Optional(
      modelId("the model's id in the catalogue, under which the engine serves it", "`models` is required"),
    ),
    models: Type.Optional(
      Type.Array(modelId("such an id"), {
        minItems: 1,
        maxItems: enginesPerSlotMax,
        description:
          "in place of `model`, the ids of several models that the engine serves at the same time, such as a base model and its LoRA adapters. They share the engine's places, and a request for any of them needs no switch. The first id names the engine in files, logs and metrics. [An example](install.md#several-models-on-one-engine)",
        absent: "the engine serves `model` alone",
      }),
    ),
    dialect: Type.Enum([...dialectNames], {
      description: "the protocol of the engine; `openai`: the embedded engine, SGLang, TEI and others",
    }),
    launcher: Type.Enum(["process", "systemd", "external"], {
      default: "process",
      description:
        "how the engine is started: `process` needs `command`, `systemd` needs `unit`, `external` needs `url`",
    }),
    command: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 1,
        description:
          "program and arguments, required with `launcher: process`. The agent fills in `{port}` and `{socket}`",
        absent: "none",
      }),
    ),
    env: Type.Optional(
      Type.Record(Type.String(), Type.String(), {
        description:
          "variables of the engine. `CUDA_VISIBLE_DEVICES` follows `gpus`. The agent sets `VLLM_MAX_STOP_STRINGS` to 64, the maximum of the API, unless `env` sets it. A vLLM that is `external` or in a container takes 4 stop strings unless you start it with this variable",
        absent: "none of yours",
      }),
    ),
    directory: Type.Optional(
      text("where `command` runs, relative to the file", { absent: "the directory of the file" }),
    ),
    unit: Type.Optional(
      text("the [unit](install.md#engines-as-units-of-their-own) of the engine, required with `launcher: systemd`", {
        absent: "none",
      }),
    ),
    url: Type.Optional(
      text("address of an engine that is started elsewhere, required with `launcher: external`", { absent: "none" }),
    ),
    sleep: Type.Optional(
      Type.Object(
        {
          level: Type.Enum([1, 2], {
            description:
              "vLLM sleeps instead of being stopped. No other engine can ([why not SGLang](decisions/0005-sglang-does-not-sleep.md))",
          }),
        },
        {
          ...closed,
          description: "what happens to the engine when another model gets the slot",
          absent: "it is stopped",
        },
      ),
    ),
    maxConcurrent: Type.Integer({
      minimum: 1,
      default: 256,
      description:
        "the engine's places: the answers that it generates at once. Set the number that the engine itself runs at once (vLLM `--max-num-seqs`, llama-server `-np`, the embedded engine `--parallel`), because a request in the engine's own queue cannot be moved. A request with `n` takes `n` places. If llama-server reports fewer slots, the agent uses those, and fewer still if they [share one context](decisions/0016-places.md)",
    }),
    cachePrompts: Type.Optional(
      Type.Enum(["per-account", "shared", "off"], {
        description:
          "which prompts an engine may reuse from its cache: prompts of the same account, of all accounts, or none. `shared` is for the engine of one customer, because `cached_tokens` and response times reveal what other accounts sent. llama-server reads each whole prompt unless `shared` is set. An `openai` engine must honour `cache_salt`, as the embedded engine and SGLang do; switch off the cache of any other ([decision 15](decisions/0015-what-engines-keep-of-prompts.md))",
        absent: "`per-account`",
      }),
    ),
    silentSeconds: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description:
          "seconds without a sign of life after which an engine that owes an answer counts as hanging. The request fails and the engine is restarted. Signs of life are output or progress in any of its streams, and counters of work in its `/metrics` that move. Comments and `/health` do not count",
        absent:
          "60, at most half of `requestSeconds`. Engines that show neither counters of work nor progress while they read a prompt (dialect `openai`, embeddings of llama-server), and llama-servers that may hold back text without counters (a `stop` of more than 64 bytes), have the time that a request may take",
      }),
    ),
    memoryBytes: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          "GPU memory that must be free before the engine starts or wakes. If too little is free, sleeping engines are stopped. The start is refused only if a foreign process is in the way",
        absent: "the memory that the engine held when it last ran, once measured",
      }),
    ),
  },
  closed,
);

const slotSchema = Type.Object(
  {
    name: name("the slot's name"),
    gpus: Type.Array(Type.Integer({ minimum: 0 }), {
      default: [],
      description:
        "indexes of the GPUs that hold one active model at a time. On a host without GPUs they are only labels",
    }),
    minResidencySeconds: seconds("how long a model keeps the slot after it became active, even if idle", 1),
    drainOpenSeconds: seconds(
      "how long the old model still takes new requests. This time begins with the first request for another model, or when the old model became active, if that was later",
      10,
    ),
    waitersMax: Type.Integer({
      minimum: 1,
      default: 512,
      description: "maximum number of waiting requests for each model",
    }),
    waiterSeconds: seconds("the maximum time that a request waits", 300),
    whileSwitching: Type.Enum(["hold", "refuse"], {
      default: "hold",
      description:
        "what happens to a request whose model is about to leave the slot. `hold`: it waits for the model's next turn, if that comes within `waiterSeconds` and within the request's own time. `refuse`: it gets 503 `model_switching` until the model is gone",
    }),
    startSeconds: seconds("deadline of an engine's start", 900),
    stopSeconds: seconds("deadline of an engine's stop", 120),
    memorySeconds: Type.Object(
      {
        room: seconds("how long a start waits for free GPU memory", 30),
        spare: seconds("after how long a sleeping engine is stopped to make room", 3),
        return: seconds("how long the GPU memory of a stopped engine may take to become free", 10),
      },
      { ...closed, default: {} },
    ),
    memoryReturnShare: Type.Number({
      minimum: 0,
      maximum: 1,
      default: 0.75,
      description:
        "the share of an engine's memory that must be free again before the memory counts as returned. Lower it for sleepers that keep more than a quarter",
    }),
    backoffSeconds: Type.Object(
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
          "`host:port` of `listen.nodes` of one or more routers, or a name that resolves to all. One of them must be reachable when the agent starts. Routers send the addresses of the others (`nodes.announce`)",
        absent: "`WEICHE_NODES_LISTEN`, or `127.0.0.1:7443`",
      }),
    ),
    tls: Type.Optional(
      Type.Object(
        {
          cert: text("file of the node's certificate chain"),
          key: text("file of the certificate's private key"),
          ca: text("file of the authority that signed the router's certificate"),
        },
        { ...closed, description: "mutual TLS towards routers", absent: "routers on loopback only" },
      ),
    ),
    slots: Type.Array(slotSchema, { minItems: 1, maxItems: slotsMax }),
    dataDir: Type.Optional(text("the data directory, as `WEICHE_DATA_DIR`", { absent: "`data` in the project" })),
    listen: Type.Object(
      {
        ops: text(
          "`host:port` of metrics and health, the agent's only listener. Other addresses than loopback need `ops.tls` or `ops.tokenFile`",
          { default: "127.0.0.1:9465" },
        ),
      },
      { ...closed, default: {} },
    ),
    ops: Type.Optional(opsSchema),
    requestSeconds: seconds("the maximum duration of a request", 600),
    shutdownSeconds: seconds("how long running answers may continue after SIGTERM", 600),
    usageKeepHours: Type.Number({
      minimum: 1,
      default: 1,
      description:
        "the minimum number of hours for which usage records stay on the node after a router committed them. Set more than the time between two [backups](runbook.md#backup-and-restore): a restored database then receives all usage since the backup again. A record has about 200 bytes, and whole files of 4 MiB are removed",
    }),
    logLevel: Type.Enum(["trace", "debug", "info", "warn", "error", "fatal"], {
      default: "info",
      description: "the lowest level that is logged",
    }),
  },
  closed,
);

export type RawAgent = Static<typeof agentSchema>;
export type RawEngine = Static<typeof engineSchema>;
