/**
 * The schema of a plan for `weiche simulate`. A missing value gets its `default`, and the answer lists it as assumed.
 * The rules of a slot have the names, ranges and defaults of agent.yaml.
 */
import { Type, type Static } from "typebox";
import { fitNames } from "../loads/fits.ts";
import { tokensMax } from "../loads/trace-row.ts";
import { agentSchema } from "@weiche/node-agent/src/config/config-schema.ts";

const closed = { additionalProperties: false } as const;

function seconds(description: string, byDefault: number) {
  return Type.Number({ minimum: 0, default: byDefault, description: `${description}, in seconds` });
}

function perSecond(description: string) {
  return Type.Number({ exclusiveMinimum: 0, maximum: 10_000, description });
}

function tokens(description: string, byDefault: number) {
  return Type.Number({ minimum: 1, maximum: tokensMax, default: byDefault, description });
}

/** Slots of a simulated fleet. */
export const slotsMax = 10_000;

const stepSchema = Type.Object(
  {
    baseMs: Type.Number({ minimum: 0, default: 20, description: "milliseconds of a step in any case" }),
    perRunningMs: Type.Number({ minimum: 0, default: 0.2, description: "milliseconds for each running answer" }),
    perThousandTokensMs: Type.Number({
      minimum: 0,
      default: 0.02,
      description: "milliseconds for each thousand tokens in the contexts of the running answers",
    }),
  },
  { ...closed, default: {}, description: "the time of a step, which gives a token to each running answer" },
);

const demandSchema = Type.Object(
  {
    perSecond: perSecond("mean requests per second, at random times"),
    inputTokens: tokens("mean tokens of a prompt", 1_155),
    outputTokens: tokens("mean tokens of an answer", 211),
    accounts: Type.Integer({ minimum: 1, default: 40, description: "number of accounts that send the requests" }),
  },
  closed,
);

const clientsSchema = Type.Object(
  {
    perSecond: perSecond("mean requests per second over a day"),
    like: Type.Enum([...fitNames], {
      default: "azure-chat",
      description: "the public trace whose lengths, bursts and conversations the requests resemble",
    }),
    nightShare: Type.Number({
      exclusiveMinimum: 0,
      maximum: 1,
      default: 0.33,
      description: "requests at 2 a.m. as a share of those at 2 p.m. The load begins at midnight",
    }),
  },
  { ...closed, description: "requests of few busy and many quiet accounts, in bursts and more by day than at night" },
);

const modelSchema = Type.Object(
  {
    model: Type.String({ minLength: 1, description: "the model's id" }),
    profile: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "the file that `weiche-agent profile` wrote, or a table of AIConfigurator (`.csv`), relative to the plan. It replaces defaults; values in the plan come first",
        absent: "values that the plan does not give are assumed",
      }),
    ),
    engineVersion: Type.Optional(
      Type.String({
        minLength: 1,
        description: "the version of the engine that will run. A profile of another version is refused",
        absent: "a profile of any version is accepted",
      }),
    ),
    places: Type.Integer({
      minimum: 1,
      default: 32,
      description: "most answers at once, `maxConcurrent` in agent.yaml",
    }),
    startSeconds: seconds("time of the engine's start, until its probe has answered", 60),
    stopSeconds: seconds("time until the GPU memory is free after the engine stops or falls asleep", 5),
    wakeSeconds: Type.Optional(
      Type.Number({
        minimum: 0,
        description: "time to wake, in seconds. With it, the engine sleeps instead of being stopped",
        absent: "the engine is stopped, and each turn begins with a start",
      }),
    ),
    step: stepSchema,
    prefillTokensPerSecond: Type.Number({
      exclusiveMinimum: 0,
      default: 5_000,
      description: "tokens of prompts that the engine reads per second",
    }),
    cacheTokens: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: "tokens that the engine's KV cache holds",
        absent: "the cache never limits the running answers",
      }),
    ),
    activeGiB: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: "GPU memory of the engine while it is active, in GiB",
        absent: "it fits beside any others",
      }),
    ),
    asleepGiB: Type.Optional(
      Type.Number({
        minimum: 0,
        description: "GPU memory that the engine keeps while it sleeps, in GiB",
        absent: "it keeps none",
      }),
    ),
    demand: Type.Optional(demandSchema),
    clients: Type.Optional(clientsSchema),
  },
  { ...closed, description: "a model and its engine" },
);

const groupSchema = Type.Object(
  {
    models: Type.Array(Type.String(), {
      minItems: 1,
      description: "the models that take turns on each of these slots",
    }),
    slots: Type.Optional(
      Type.Integer({
        ...{ minimum: 1, maximum: slotsMax },
        description: "the number of slots",
        absent: "the least number that meets the goals is searched for",
      }),
    ),
  },
  closed,
);

const { minResidencySeconds, drainOpenSeconds, waitersMax, waiterSeconds, whileSwitching } =
  agentSchema.properties.slots.items.properties;

export const rulesSchema = Type.Object(
  {
    ...{ minResidencySeconds, drainOpenSeconds, waitersMax, waiterSeconds, whileSwitching },
    fairness: Type.Boolean({ default: true, description: "whether accounts share the places of an engine" }),
  },
  { ...closed, default: {}, description: "the rules of every slot" },
);

export const planSchema = Type.Object(
  {
    models: Type.Array(modelSchema, { minItems: 1, description: "the models" }),
    fleet: Type.Optional(
      Type.Array(groupSchema, {
        minItems: 1,
        description: "groups of equal slots",
        absent: "one group, whose slots may serve every model",
      }),
    ),
    load: Type.Optional(
      Type.Object(
        {
          trace: Type.String({
            minLength: 1,
            description: "the file of a trace, or the folder of ServeGen's client files, relative to the plan",
          }),
          perSecond: Type.Optional(
            Type.Number({
              exclusiveMinimum: 0,
              description: "mean requests per second, to which ServeGen's clients are scaled",
              absent: "the rate of the client files",
            }),
          ),
          model: Type.Optional(
            Type.String({ description: "the model of all requests", absent: "the trace names a model in each line" }),
          ),
        },
        { ...closed, description: "a recorded load", absent: "each model's `demand` makes the load" },
      ),
    ),
    slotGiB: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        description: "GPU memory of a slot, in GiB",
        absent: "any models may share a slot",
      }),
    ),
    slotsPerNode: Type.Integer({ minimum: 1, default: 1, description: "slots on each node" }),
    hours: Type.Number({
      exclusiveMinimum: 0,
      maximum: 24 * 366,
      default: 24,
      description: "how long the demand of the models lasts",
    }),
    goals: Type.Array(Type.String(), {
      default: [],
      description: "what must hold, such as `wait.p99<=30s`, `firstToken.p95<=5s` or `refused<=1%`",
    }),
    rules: rulesSchema,
    limits: Type.Optional(
      Type.Object(
        {
          requestsPerMinute: Type.Integer({ minimum: 1, description: "requests of an account within 60 seconds" }),
          parallelRequests: Type.Integer({ minimum: 1, description: "requests of an account at the same time" }),
        },
        { ...closed, description: "the limits of each account", absent: "accounts have no limits" },
      ),
    ),
    retrySeconds: Type.Array(Type.Number({ minimum: 0 }), {
      default: [1, 2, 4, 8, 8, 8],
      description:
        "the times after which a refused client tries again, or after `retry-after` if that is later. Then it gives up",
    }),
    routers: Type.Integer({ minimum: 1, maximum: 100, default: 1, description: "the number of routers" }),
    reportDelayMs: Type.Number({
      minimum: 0,
      maximum: 900,
      default: 1,
      description: "milliseconds until a router gets a node's report",
    }),
    seeds: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 5,
      description: "number of runs with different random numbers. A goal must hold with 95 % confidence over them",
    }),
    seed: Type.Integer({ minimum: 0, maximum: 2 ** 31, default: 1, description: "the first run's random numbers" }),
  },
  closed,
);

export type RawPlan = Static<typeof planSchema>;
export type RawModel = Static<typeof modelSchema>;
export type RawRules = Static<typeof rulesSchema>;
