import { ApiError } from "@weiche/shared/errors.ts";
import { expect, test } from "vitest";
import { EngineFault } from "../engines/dialects/engine-fault.ts";
import { Ended } from "./exchange.ts";
import { unfinishedOutcome } from "./unfinished-outcome.ts";

test.each([
  ["a client that leaves", new Ended("client"), "client-ended"],
  ["the time limit", new Ended("limit"), "limit-ended"],
])("%s costs the generated tokens, even before the first byte", (_name, cause, outcome) => {
  for (const isAnswering of [true, false]) expect(unfinishedOutcome(cause, isAnswering)).toBe(outcome);
});

const ofAnswer: [name: string, cause: unknown][] = [
  ["malformed", new EngineFault("malformed")],
  ["too large", new EngineFault("too large")],
  ["gave up", new EngineFault("gave up")],
  ["a prompt that is found too long", new ApiError("context_window_exceeded", "x")],
];
const ours: [name: string, cause: unknown][] = [
  ...(["refused", "connection lost", "bad framing", "silent", "gone", "unfinished", "engine error"] as const).map(
    (reason): [string, unknown] => [reason, new EngineFault(reason)],
  ),
  ...(["core died", "unknown model", "key refused"] as const).map((reason): [string, unknown] => [
    reason,
    new EngineFault(reason),
  ]),
  ["an answer that kills its engine", new EngineFault("gave up", "gave up", "alone")],
  ["a lost router", new Ended("router")],
  ["a stop of the agent", new Ended("stop")],
  ["an error of ours", new ApiError("internal", "x")],
  ["a bug", new Error("x")],
];

test.each(ofAnswer)("output that a client has received before the fault '%s' is billed [A9]", (_name, cause) => {
  expect(unfinishedOutcome(cause, true)).toBe("limit-ended");
});

test.each(ours)("an answer that breaks off because of '%s' costs nothing [A9]", (_name, cause) => {
  expect(unfinishedOutcome(cause, true)).toBe("broken");
});

test.each([...ofAnswer, ...ours])("a request that gets a status because of '%s' has no record [A9]", (_name, cause) => {
  expect(unfinishedOutcome(cause, false)).toBeUndefined();
});
