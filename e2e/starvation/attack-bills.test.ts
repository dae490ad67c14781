import { expect, test } from "vitest";
import type { Made } from "../cluster/billing-check.ts";
import type { DumpedRecord } from "../cluster/usage-dump.ts";
import { attackFaults } from "./attack-bills.ts";

const made: Made = {
  ...{ id: "r1", path: "/v1/chat/completions", node: "node-1", itlMs: 20, fields: [] },
  ...{
    prompt_tokens: 7,
    generated: 40,
    startedAtMs: 0,
    firstTokenAtMs: 1,
    closedAtMs: 1_500,
    finished: true,
    aborted: false,
  },
};
const record: DumpedRecord = {
  ...{ requestId: "r1", attempt: 1, node: "node-1", accountId: "a", userId: "u", keyId: "k", model: "sim" },
  ...{ day: "2026-11-26", outcome: "finished", promptTokens: 7, completionTokens: 40, credits: 47n },
};
const left = { outcome: "client-ended", completionTokens: 30 } as const;

test.each<[string, readonly Partial<DumpedRecord>[], Partial<Made>, string[]]>([
  ["nothing, if the bill is right", [{}], {}, []],
  ["nothing, if another attempt is void", [{}, { attempt: 2, outcome: "void" }], {}, []],
  ["nothing, if a client left and pays for the tokens until then", [left], { finished: false }, []],
  ["nothing, if no token was generated", [], { generated: 0, firstTokenAtMs: undefined, finished: false }, []],
  ["nothing, if a client left at the first tokens", [], { closedAtMs: 900, finished: false }, []],
  ["an aborted answer that is not billed", [], { finished: false }, ["is not billed"]],
  ["nothing, if a client left before an engine was asked", [{}, { requestId: "r2", credits: 0n }], {}, []],
  ["an answer that is billed twice", [{}, { attempt: 2 }], {}, ["is billed 2 times"]],
  ["an answer that is not billed", [], {}, ["is not billed"]],
  ["a part of a whole answer", [{ completionTokens: 39 }], {}, ["is billed 39 (finished)"]],
  [
    "more tokens than were generated",
    [{ ...left, completionTokens: 41 }],
    { finished: false },
    ["is billed 41 (client-ended)"],
  ],
  ["another number of input tokens", [{ promptTokens: 8 }], {}, ["is billed 8 tokens of input, not 7"]],
  [
    "a bill for a request that no engine received",
    [{}, { requestId: "r2" }],
    {},
    ["no engine met r2, and it costs 7 + 40 on node-1 (finished)"],
  ],
])("finds %s", (_what, records, more, faults) => {
  const found = attackFaults({ records: records.map((each) => ({ ...record, ...each })) }, [{ ...made, ...more }]);
  expect(found.map((fault) => fault.replace(/^r1, .* made, /, ""))).toEqual(faults);
});
