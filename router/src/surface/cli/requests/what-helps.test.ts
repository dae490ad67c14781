import { expect, test } from "vitest";
import { asId } from "@weiche/shared/ids.ts";
import { refusalCodes } from "../../../usage/refusal-codes.ts";
import { explainText } from "./explain-text.ts";
import { whatHelps } from "./what-helps.ts";

type Explained = Parameters<typeof explainText>[0];
type Ended = NonNullable<Explained["ended"]>;

function explain(given: Partial<Ended>, failures: Explained["failures"] = []): string {
  const id = asId<never>("0190f3c5-7a00-7000-8000-000000000001");
  const facts = {
    id,
    acceptedAt: "2026-11-15T11:00:00Z",
    endpoint: "chat",
    seconds: 61,
    bytesSent: 9,
    tried: [],
  } as const;
  const ended: Ended = { ...facts, outcome: "refused", status: 400, ...given };
  const memory = { requests: 1, requestsMax: 10_000, since: null };
  const empty = { usage: [], setAside: [], unanswered: null, failures };
  return explainText({ id, acceptedAt: facts.acceptedAt, running: null, ended, ...empty, memory });
}

test.each<[Partial<Ended>, string]>([
  [{ refusal: "too_many_answers", advice: "fewer-answers" }, "The model's `answersMax`"],
  [{ refusal: "schema_refused", advice: "simplify-schema" }, "lists all bounds"],
  [{ refusal: "body_too_slow" }, "within 60 s"],
  [{ refusal: "no_room_for_body", status: 503 }, "memory for large bodies"],
  [{ refusal: "context_window_exceeded" }, "`context_length_exceeded`"],
  [{ refusal: "rate_limit_minute", status: 429 }, "this request would have been admitted"],
  [{ refusal: "model_switching", status: 503 }, "held for the model's next turn"],
  [{ refusal: "model_unavailable", status: 503 }, "is avoided"],
  [{ refusal: "internal", status: 500 }, "an agent restarts an engine that fails"],
  [{ outcome: "stalled", status: 200 }, "at least 1 KiB/s"],
  [{ outcome: "timeout", status: 200 }, "`engines[].silentSeconds`"],
  [{ outcome: "broken", status: 200 }, "nodes and engines in trouble"],
])("a request that ended with %j gets advice", (given, words) => {
  expect(explain(given).replaceAll(/\s+/g, " ")).toContain(words);
});

test("a complete answer and an unknown refusal get no advice", () => {
  expect(whatHelps({ outcome: "answered" })).toEqual([]);
  expect(whatHelps({ outcome: "client-gone" })).toEqual([]);
  expect(whatHelps({ outcome: "refused", refusal: "later" })).toEqual([]);
});

test("every refusal with the advice to retry later has a sentence for operators", () => {
  const withSentence = Object.keys(refusalCodes).filter(
    (refusal) => whatHelps({ outcome: "refused", refusal }).length > 0,
  );
  const others = Object.entries(refusalCodes).filter(([code]) => !withSentence.includes(code));
  expect(new Set(others.map(([, { advice }]) => advice))).not.toContain("retry-later");
});

test.each<[Partial<Ended>, boolean]>([
  [{ refusal: "model_unavailable", status: 503 }, true],
  [{ outcome: "broken", status: 200 }, true],
  [{ outcome: "answered", status: 200 }, false],
])("the failures of the model's engines are shown after a request that ended with %j: %s", (given, isShown) => {
  const failure = { model: "m", kind: "exit", reason: "signal SIGKILL", lines: [], seconds: 12 } as const;
  const text = explain(given, [{ node: "gpu-1", slot: "a", failure }]);
  expect(text.includes("gpu-1/a: m ended by itself 12.0 s ago: signal SIGKILL.")).toBe(isShown);
});
