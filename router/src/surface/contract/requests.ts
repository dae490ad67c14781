/** Routes of the API's requests, for the operator: ids, times and words of closed sets, never content. */
import { Type } from "typebox";
import { engineFailure } from "./nodes.ts";
import { accountName, count, credits, id, instant, object, orNull, type RouteTable } from "./route.ts";

const seconds = Type.Number();
const optionalSeconds = Type.Optional(Type.Number());
const word = Type.Optional(Type.String());

const tried = object({
  node: Type.String(),
  slot: word,
  sentAfterSeconds: seconds,
  repliedAfterSeconds: Type.Optional(Type.Number({ description: "Left out until the node replies." })),
  result: Type.Optional(
    Type.String({ description: "`answered`, `lost` (the node or its connection was lost), or the node's error code." }),
  ),
  waitedFor: Type.Optional(
    Type.Enum(["switch", "place"], {
      description: "What the request waited for in the slot, as reported by the node.",
    }),
  ),
  waitedSeconds: optionalSeconds,
  estimatedSeconds: Type.Optional(
    Type.Number({ description: "The wait that the node estimated when the request arrived." }),
  ),
});

const request = {
  id,
  acceptedAt: instant,
  endpoint: Type.Enum(["chat", "completions", "embeddings", "models", "other"]),
  model: word,
  accountId: word,
  keyId: word,
  seconds: Type.Number({ description: "The request's age, or its duration." }),
  firstByteSeconds: optionalSeconds,
  bytesSent: count,
  tried: Type.Array(tried),
};

const runningRequest = object({
  ...request,
  state: Type.Enum(["reading", "waiting", "answering", "sent"], {
    description:
      "`reading`: the body is being received or checked. `waiting`: in a slot. `sent`: to a node that reports no state. `answering`: the answer is generated or sent.",
  }),
  waitsFor: Type.Optional(Type.Enum(["switch", "place"])),
  slotState: word,
  position: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: "Position among the slot's waiting requests for the model. 1 is the next.",
    }),
  ),
  estimateSeconds: Type.Optional(
    Type.Number({ description: "Time left until it is served, as estimated by the node." }),
  ),
  completionTokens: Type.Optional(Type.Integer({ minimum: 0, description: "Tokens so far, as counted by the node." })),
  tokensPerSecond: Type.Optional(Type.Number({ description: "Rate since the first token." })),
});

const endedRequest = object({
  ...request,
  outcome: Type.Enum(["answered", "refused", "client-gone", "broken", "timeout", "stalled"]),
  status: Type.Integer({ description: "HTTP status. 0 if the client got none." }),
  code: word,
  refusal: Type.Optional(Type.String({ description: "The reason, more precise than the code." })),
  advice: word,
});

const memory = object(
  {
    requests: count,
    requestsMax: count,
    since: orNull(instant),
  },
  { description: "The router's memory of requests with a known key: how many it holds, and when the oldest ended." },
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
  estimatedTokens: Type.Integer({ minimum: 0, description: "How many of the tokens were estimated." }),
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
    summary: "List this router's running requests, oldest first",
    may: ["operator"],
    query: object(filter),
    reply: object({
      total: count,
      items: Type.Array(runningRequest),
      silentNodes: Type.Array(Type.String(), { description: "Nodes that did not answer about their requests." }),
    }),
  },
  listEnded: {
    summary: "List this router's last ended requests, newest first",
    may: ["operator"],
    query: object({ ...filter, outcome: Type.Optional(endedRequest.properties.outcome) }),
    reply: object({ items: Type.Array(endedRequest), memory }),
  },
  countRunning: {
    summary: "Count this router's running requests by model and account, the most first",
    may: ["operator"],
    reply: object({
      requests: count,
      models: Type.Array(object({ model: Type.String(), requests: count })),
      accounts: Type.Array(object({ accountId: id, requests: count })),
    }),
  },
  explainRequest: {
    summary: "Explain a request from this router's memory and the database",
    may: ["operator"],
    params: object({ id: Type.String({ pattern: "^[0-9a-f-]{8,36}$" }) }),
    reply: object({
      id,
      acceptedAt: instant,
      running: orNull(runningRequest),
      ended: orNull(endedRequest),
      usage: orNull(Type.Array(usage, { description: "null if the database does not answer." })),
      setAside: Type.Array(setAside),
      failures: Type.Array(object({ node: Type.String(), slot: Type.String(), failure: engineFailure }), {
        description: "Failures of the model's engines that nodes report now.",
      }),
      memory,
    }),
  },
} as const satisfies RouteTable;
