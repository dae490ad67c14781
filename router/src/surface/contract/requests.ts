/** Routes of the API's requests: ids, times and words of closed sets, never content. Members see only their own. */
import { Type } from "typebox";
import { endedOutcomes, listedOutcomes } from "../../usage/requests/outcomes.ts";
import { engineFailure } from "./nodes.ts";
import {
  accountName,
  count,
  credits,
  everybody,
  id,
  instant,
  keyName,
  object,
  orNull,
  userName,
  type RouteTable,
} from "./route.ts";
import { usedBy, usedKey } from "./usage.ts";

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
  outcome: Type.Enum([...endedOutcomes]),
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

const unanswered = object(
  {
    ...{ accountId: id, userId: id, keyId: id },
    model: orNull(Type.String()),
    code: orNull(Type.String({ description: "Why it was refused. null if its client left." })),
    advice: orNull(Type.String()),
    status: Type.Integer({ description: "Its HTTP status. 0 if none was sent." }),
    seconds,
    requests: count,
  },
  { description: "What the database knows of a request without an answer. null if nothing." },
);

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

const listedOutcome = Type.Enum([...listedOutcomes]);

const listedRequest = {
  id,
  at: Type.String({ ...instant, description: "When it was accepted." }),
  model: orNull(Type.String()),
  key: usedKey,
  outcome: listedOutcome,
  status: orNull(Type.Integer({ description: "HTTP status. null if none was sent, or if it is not known." })),
  code: orNull(Type.String({ description: "Why it was refused." })),
  advice: orNull(Type.String({ description: "A word for the advice. The page has its sentence." })),
  requests: Type.Integer({
    minimum: 1,
    description: "How many requests alike the row stands for, from this one on. More than 1 while many are refused.",
  }),
  promptTokens: orNull(count),
  completionTokens: orNull(count),
  credits: orNull(credits),
  firstTokenSeconds: orNull(seconds),
  seconds: Type.Number({ description: "Its duration." }),
};

/** `before` continues a list. */
const listFilter = {
  model: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  outcome: Type.Optional(listedOutcome),
  code: Type.Optional(Type.String({ maxLength: 60, description: "Only requests refused with this code." })),
  from: Type.Optional(instant),
  to: Type.Optional(Type.String({ ...instant, description: "The end, exclusive." })),
};
const listStep = {
  before: Type.Optional(Type.String({ ...id, description: "`next` of the step before." })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: "Defaults to 50." })),
};
const ofPerson = { keyId: Type.Optional(id), userId: Type.Optional(id) };

const listEnd = {
  next: orNull(
    Type.String({ description: "`before` of the next step. null after the last one. A step may be empty before it." }),
  ),
  searchedTo: Type.String({ ...instant, description: "Everything after this time was searched." }),
  days: Type.Integer({ minimum: 1, description: "For how many days requests are listed." }),
};

export const requestsContract = {
  listRequests: {
    summary: "List the account's requests without their content, newest first; members see their own",
    may: everybody,
    query: object({ ...listFilter, ...ofPerson, ...listStep }),
    reply: object({
      items: Type.Array(object(listedRequest)),
      ...listEnd,
      filter: object(
        { key: orNull(usedKey), user: orNull(usedBy) },
        { description: "The names of the key and user to which the rows are restricted. null if not restricted." },
      ),
    }),
  },
  exportRequests: {
    summary: "Export all of these requests as CSV",
    may: everybody,
    query: object({ ...listFilter, ...ofPerson }),
    stream: "text/csv",
  },
  listPast: {
    summary: "List the ended requests of all routers, newest first, as far as they had a known key",
    may: ["operator"],
    query: object({
      ...listFilter,
      ...{ account: Type.Optional(accountName), user: Type.Optional(userName), key: Type.Optional(keyName) },
      keyId: Type.Optional(id),
      node: Type.Optional(Type.String({ maxLength: 200 })),
      ...listStep,
    }),
    reply: object({
      items: Type.Array(
        object({
          ...listedRequest,
          account: object({ id, name: orNull(Type.String()) }),
          node: orNull(Type.String()),
        }),
      ),
      ...listEnd,
    }),
  },
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
    params: object({
      id: Type.String({
        pattern: "^((chatcmpl|cmpl)-)?[0-9a-fA-F-]{4,36}$",
        description: "`x-request-id`, or `id` of an answer, or at least 4 characters of its beginning.",
      }),
    }),
    reply: object({
      id,
      acceptedAt: instant,
      running: orNull(runningRequest),
      ended: orNull(endedRequest),
      usage: orNull(Type.Array(usage, { description: "null if the database does not answer." })),
      setAside: Type.Array(setAside),
      unanswered: orNull(unanswered),
      failures: Type.Array(object({ node: Type.String(), slot: Type.String(), failure: engineFailure }), {
        description: "Failures of the model's engines that nodes report now.",
      }),
      memory,
    }),
  },
} as const satisfies RouteTable;
