import { expect, test } from "vitest";
import type { FinishedRequest } from "./exchange.ts";
import { RecentRequests, requestsMax, strangersMax } from "./recent-requests.ts";

const ended = (number: number, accountId?: string) =>
  ({ requestId: `r${number}-`, endedAtMs: number, accountId }) as unknown as FinishedRequest;
const everything = () => true;

test("the latest requests are kept and found by the beginning of their ids", () => {
  const recent = new RecentRequests();
  for (let number = 0; number < requestsMax + 3; number++) recent.remember(ended(number, "a"));
  expect(recent.extent).toMatchObject({ requests: requestsMax, oldest: { requestId: "r3-" } });
  expect(recent.find("r2-", 9)).toEqual([]);
  expect(recent.find("r3-", 9)).toMatchObject([{ requestId: "r3-" }]);
  expect(recent.latest(everything, 2)).toMatchObject([{ endedAtMs: requestsMax + 2 }, { endedAtMs: requestsMax + 1 }]);
});

test("a flood of requests without a known key does not replace requests with a key", () => {
  const recent = new RecentRequests();
  recent.remember(ended(0, "a"));
  for (let number = 1; number < strangersMax + requestsMax; number++) recent.remember(ended(number));
  expect(recent.find("r0-", 1)).toHaveLength(1);
  expect(recent.latest(everything, requestsMax)).toHaveLength(strangersMax + 1);
});

test("without requests all results are empty", () => {
  expect(new RecentRequests().latest(everything, 5)).toEqual([]);
  expect(new RecentRequests().extent).toEqual({ requests: 0, oldest: undefined });
});
