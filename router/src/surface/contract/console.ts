/** Routes of the operators' console: its link, its session, and the live items of its pages. */
import { Type, type Static } from "typebox";
import { subscriptionFields } from "./package.ts";
import { nodeFields } from "./nodes.ts";
import { count, credits, id, instant, object, orNull, type RouteTable } from "./route.ts";

const session = object({
  endsAt: instant,
  router: Type.String({ description: "The host name of this router." }),
  version: Type.String(),
});

const seconds = Type.Number();
const phaseSeconds = Type.Optional(Type.Number());

/**
 * The past switches of one slot. It has instants instead of ages, so that the item stays the same until the next switch.
 */
const slotHistory = object({
  node: Type.String(),
  slot: Type.String(),
  since: instant,
  switches: Type.Array(
    object({
      endedAt: instant,
      from: Type.Optional(Type.String()),
      model: Type.String(),
      failed: Type.Boolean({ description: "Whether the start failed. A failed switch has no other facts." }),
      seconds,
      parts: object({
        drain: phaseSeconds,
        stop: phaseSeconds,
        memory: phaseSeconds,
        start: phaseSeconds,
        probe: phaseSeconds,
      }),
    }),
    { description: "At most 50, the oldest first." },
  ),
});

const node = object(nodeFields);

const accountUse = object({
  id,
  name: Type.String(),
  blockedAt: orNull(instant),
  ...subscriptionFields,
  quota: orNull(credits),
  used: orNull(credits),
  exhausted: Type.Boolean(),
  parallel: count,
  lastMinute: count,
  users: count,
  blockedUsers: count,
  refused: Type.Array(object({ code: Type.String(), count }), {
    description: "Refused requests of the last 24 hours, the most frequent code first.",
  }),
});

const pipeline = object({
  unacknowledged: object({
    records: count,
    oldestSeconds: Type.Optional(Type.Number()),
    nodes: Type.Array(object({ name: Type.String(), records: count, oldestSeconds: Type.Optional(Type.Number()) })),
    unknown: Type.Array(Type.String(), { description: "Nodes that are not linked or report no outbox." }),
  }),
  waitingForCommit: count,
  setAside: orNull(object({ lastDay: count, total: count }, { description: "null if the database does not answer." })),
  lastEvaluationAt: orNull(instant),
  evaluateEverySeconds: Type.Number(),
  database: object({
    answersInMs: orNull(Type.Number({ description: "null if the database does not answer." })),
    pools: Type.Array(
      object({ pool: Type.Enum(["general", "usage", "requests"]), used: count, max: count, waiting: count }),
    ),
    keysReadSecondsAgo: Type.Number(),
  }),
});

const share = Type.Number({ description: "0 to 1." });
const told = object(
  { path: Type.String(), models: Type.Array(Type.String()), value: Type.String() },
  { description: "A value of a simulation's plan. Without models, it holds for the whole fleet." },
);

const capacity = object({
  step: Type.Enum(["idle", "reading", "simulating"]),
  share: Type.Number({ description: "The completed share of the step, 0 to 1." }),
  problem: orNull(
    Type.Enum(["no-usage", "no-node", "no-model", "database", "too-large", "failed"], {
      description: "Why the last run gave no answer.",
    }),
  ),
  wasCancelled: Type.Boolean({ description: "Whether the last run was cancelled." }),
  answer: orNull(
    object(
      {
        ...{ endedAt: instant, from: instant, until: instant, requests: count },
        leftOut: Type.Integer({ minimum: 0, description: "Requests for models that no node serves now." }),
        isWaiting: Type.Boolean({ description: "Whether one request of a hundred waits for longer than a second." }),
        ...{ switchShare: share, drainShare: share, gpus: Type.Number(), creditsPerGpuHour: Type.Number() },
        models: Type.Array(
          object({
            ...{ model: Type.String(), requests: count, waitP50Seconds: seconds, waitP99Seconds: seconds },
            ...{ firstTokenP99Seconds: seconds, refusedShare: share, gaveUp: count },
          }),
        ),
        slots: Type.Array(
          object({
            ...{ node: Type.String(), slot: Type.String(), models: Type.Array(Type.String()) },
            waitShare: Type.Number({ description: "The share of all waiting time that was in this slot." }),
            ...{ switchShare: share, drainShare: share, switchesPerHour: Type.Number() },
            creditsPerGpuHour: Type.Number(),
          }),
          { description: "The slot in which requests waited longest altogether comes first." },
        ),
        ...{ measured: Type.Array(told), assumed: Type.Array(told) },
      },
      { description: "The newest answer. null until a run has given one." },
    ),
  ),
});

/** The items in each page's stream, by their keys. */
const consoleItems = {
  nodes: Type.Record(Type.String(), node),
  slots: Type.Record(Type.String(), Type.Union([object({ node }), object({ history: slotHistory })])),
  accounts: Type.Record(
    Type.String(),
    Type.Union([object({ total: count }), object({ account: accountUse, place: count })]),
  ),
  pipeline: Type.Record(Type.String(), pipeline),
  capacity: Type.Record(Type.String(), capacity),
} as const;
export type ConsolePage = keyof typeof consoleItems;
export type ConsoleItem<Page extends ConsolePage> = Static<(typeof consoleItems)[Page]>[string];
export type ConsoleNode = Static<typeof node>;
export type ConsoleHistory = Static<typeof slotHistory>;
export type ConsoleAccount = Static<typeof accountUse>;
export type ConsoleCapacity = Static<typeof capacity>;
export type ConsolePipeline = Static<typeof pipeline>;

export const consoleContract = {
  makeConsoleLink: {
    summary: "Make a link that opens the console once, within a minute",
    may: ["operator"],
    only: "admin-socket",
    reply: object({ url: Type.String(), expiresAt: instant }),
    status: 201,
  },
  openConsole: {
    summary: "Exchange a link's code, from its fragment, for a session",
    may: ["nobody"],
    only: "console",
    body: object({ code: Type.String({ maxLength: 200 }) }),
    reply: session,
    status: 201,
  },
  showConsole: {
    summary: "Show when the session ends",
    may: ["operator"],
    only: "console",
    reply: session,
  },
  closeConsole: {
    summary: "End the session",
    may: ["operator"],
    only: "console",
  },
  watchConsole: {
    summary:
      "Stream one page's items. Events: `all` items, `some` that changed, `beat` if none changed, `failed`. Data: {asOf, items}",
    may: ["operator"],
    only: "console",
    query: object({
      show: Type.Enum(Object.keys(consoleItems) as ConsolePage[]),
      search: Type.Optional(Type.String({ maxLength: 200 })),
      at: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 100_000, description: "Page number of the accounts list." }),
      ),
      sort: Type.Optional(Type.Enum(["name", "used", "refused"])),
    }),
    stream: "text/event-stream",
  },
  startCapacity: {
    summary: "Simulate the last week of usage on the fleet as it is. `watchConsole` shows the progress and the answer",
    may: ["operator"],
    only: "console",
  },
  cancelCapacity: {
    summary: "End this simulation. The answer of the run before stays",
    may: ["operator"],
    only: "console",
  },
} as const satisfies RouteTable;
