import { expect, test } from "vitest";
import { asId } from "@weiche/shared/ids.ts";
import type { FinishedRequest } from "./exchange.ts";
import { unansweredOf } from "./unanswered.ts";

const ids = { accountId: asId<never>("a"), userId: asId<never>("u"), keyId: asId<never>("k") };
const facts: FinishedRequest = {
  ...{ requestId: asId("r"), endpoint: "chat", model: asId("m"), attempts: 0, tried: [], endedAtMs: 0, bytesSent: 0 },
  ...{ outcome: "refused", status: 429, refusal: "rate_limit_minute", durationMs: 7 },
  ...ids,
};

const always = { ...ids, requestId: "r", model: "m" };

test.each<[string, Partial<FinishedRequest>, object]>([
  ["a refused request is listed with its reason", {}, { code: "rate_limit_minute", status: 429, durationMs: 7 }],
  [
    "a request whose client left before the answer has no reason",
    { outcome: "client-gone", status: 0, refusal: undefined },
    { code: undefined, status: 0 },
  ],
])("%s", (_title, more, expected) => {
  expect(unansweredOf({ ...facts, ...more })).toEqual({ ...always, durationMs: 7, ...expected });
});

test.each<[string, Partial<FinishedRequest>]>([
  ["a client that left after the first byte has a usage record", { outcome: "client-gone", firstByteMs: 3 }],
  ["an answered request has a usage record", { outcome: "answered", status: 200, refusal: undefined }],
  ["a broken answer has a usage record or a void", { outcome: "broken", firstByteMs: 3 }],
  ["a request without a known key belongs to no list", { accountId: undefined }],
])("%s", (_title, more) => {
  expect(unansweredOf({ ...facts, ...more })).toBeUndefined();
});
