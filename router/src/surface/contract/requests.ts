/** Requests of the API as operators see them: ids, times and words of closed sets, never content. */
import { Type } from "typebox";
import { accountName, count, credits, id, instant, object, orNull, type RouteTable } from "./route.ts";

const seconds = Type.Number();
const optionalSeconds = Type.Optional(Type.Number());
const word = Type.Optional(Type.String());

const tried = object({
  node: Type.String(),
  slot: word,
  sentAfterSeconds: seconds,
  repliedAfterSeconds: Type.Optional(Type.Number({ description: "Absent: it has not answered." })),
  result: Type.Optional(
    Type.String({ description: "`answered`, `lost` (the node or its connection went), or the code of its error." }),
  ),
  waitedFor: Type.Optional(
    Type.Enum(["switch", "place"], { description: "What it waited for in the slot, as the node says." }),
  ),
  waitedSeconds: optionalSeconds,
});

const request = {
  id,
  acceptedAt: instant,
  endpoint: Type.Enum(["chat", "completions", "embeddings", "models", "other"]),
  model: word,
  accountId: word,
  keyId: word,
  seconds: Type.Number({ description: "Its age, or how long it took." }),
  firstByteSeconds: optionalSeconds,
  bytesSent: count,
  tried: Type.Array(tried),
};

const runningRequest = object({
  ...request,
  state: Type.Enum(["reading", "waiting", "answering", "sent"], {
    description:
      "reading: its body comes or is checked. waiting: in a slot. sent: to a node that does not say more. answering: it is generated or sent.",
  }),
  waitsFor: Type.Optional(Type.Enum(["switch", "place"])),
  slotState: word,
  completionTokens: Type.Optional(Type.Integer({ minimum: 0, description: "So far, as the node counts." })),
  tokensPerSecond: Type.Optional(Type.Number({ description: "Since its first token." })),
});

const endedRequest = object({
  ...request,
  outcome: Type.Enum(["answered", "refused", "client-gone", "broken", "timeout", "stalled"]),
  status: Type.Integer({ description: "0: the client got none." }),
  code: word,
  refusal: Type.Optional(Type.String({ description: "The reason, finer than the code." })),
  advice: word,
});

const memory = object(
  {
    requests: count,
    requestsMax: count,
    since: orNull(instant),
  },
  { description: "What this router remembers of requests with a known key: how many, and when the oldest ended." },
);

const usage = object({
  requestId: id,
  attempt: count,
  accountId: id,
  userId: id,
  keyId: id,
  model: Type.String(),
  node: Type.String(),
  promptTokens: count,
  completionTokens: count,
  estimatedTokens: Type.Integer({ minimum: 0, description: "The part of the tokens that was estimated." }),
  factor: credits,
  credits,
  outcome: Type.String(),
  durationSeconds: seconds,
  firstTokenSeconds: orNull(seconds),
});

const setAside = object({
  requestId: Type.String(),
  attempt: Type.Integer(),
  node: Type.String(),
  reason: Type.String(),
  detail: orNull(Type.String()),
});

const filter = {
  account: Type.Optional(accountName),
  model: Type.Optional(Type.String({ maxLength: 200 })),
  node: Type.Optional(Type.String({ maxLength: 200 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
};

export const requestsContract = {
  listRunning: {
    summary: "The requests of this router that run now, the oldest first",
    may: ["operator"],
    query: object(filter),
    reply: object({
      total: count,
      items: Type.Array(runningRequest),
      silentNodes: Type.Array(Type.String(), { description: "Nodes that did not say how their requests stand." }),
    }),
  },
  listEnded: {
    summary: "The requests of this router that ended last, the youngest first",
    may: ["operator"],
    query: object({ ...filter, outcome: Type.Optional(endedRequest.properties.outcome) }),
    reply: object({ items: Type.Array(endedRequest), memory }),
  },
  countRunning: {
    summary: "How many requests of this router run now, by model and account, most first",
    may: ["operator"],
    reply: object({
      requests: count,
      models: Type.Array(object({ model: Type.String(), requests: count })),
      accounts: Type.Array(object({ accountId: id, requests: count })),
    }),
  },
  explainRequest: {
    summary: "What this router and the database know of one request",
    may: ["operator"],
    params: object({ id: Type.String({ pattern: "^[0-9a-f-]{8,36}$" }) }),
    reply: object({
      id,
      acceptedAt: instant,
      running: orNull(runningRequest),
      ended: orNull(endedRequest),
      usage: orNull(Type.Array(usage, { description: "null: the database does not answer." })),
      setAside: Type.Array(setAside),
      memory,
    }),
  },
} as const satisfies RouteTable;
