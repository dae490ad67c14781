import { expect, test } from "vitest";
import type { EngineResult } from "./campaign.ts";
import { count, notes, table } from "./report.ts";
import { merged, type Run } from "./results.ts";

const result = (check: string, outcome: "pass" | "fail" | "not possible", note = "") => ({
  ...{ check, outcome, note, seconds: 1.5 },
});
const engines: EngineResult[] = [
  {
    ...{ engine: "embedded", version: "node-llama-cpp 1" },
    results: [result("chats", "pass"), result("sleeps", "not possible", "it | cannot")],
  },
  {
    engine: "llama-server",
    version: "2",
    results: [result("chats", "fail", "seen: <html>"), result("sleeps", "pass")],
  },
  { engine: "vllm", version: "not found", missing: "set WEICHE_VLLM", results: [] },
];

test("the table has a row for each check and a column for each engine, also if it was not found", () => {
  expect(table(engines)).toEqual([
    "| check | embedded<br>node-llama-cpp 1 | llama-server<br>2 | vllm<br>not found |",
    "|---|---|---|---|",
    "| chats | pass | **FAIL** | not found |",
    "| sleeps | not possible | pass | not found |",
    "| passed, failed | 1, 0 | 1, 1 | 0, 0 |",
  ]);
  expect(count(engines[1]!.results, "fail")).toBe(1);
});

test("each result with a note has a line in which markup is escaped", () => {
  expect(notes(engines)).toEqual([
    ...["## embedded", "", "- sleeps (not possible, 1.5 s): it \\| cannot", ""],
    ...["## llama-server", "", "- chats (**FAIL**, 1.5 s): seen: \\<html\\>", ""],
    ...["## vllm", "", "Not found: set WEICHE_VLLM.", ""],
  ]);
});

test("an engine that was not found or not tried keeps its earlier run", () => {
  const run = (engine: EngineResult, date: string) => ({ ...engine, date }) as Run;
  const [embedded, llamaServer, vllm] = engines as [EngineResult, EngineResult, EngineResult];
  const dates = (runs: readonly Run[]) => runs.map(({ engine, date }) => [engine, date]);
  const ran = { engine: "vllm", version: "0.32", results: [] } as const;
  const before = [run(embedded, "1"), run(llamaServer, "1"), run(ran, "1")];
  expect(dates(merged(before, [run(llamaServer, "2"), run(vllm, "2")]))).toEqual([
    ["embedded", "1"],
    ["llama-server", "2"],
    ["vllm", "1"],
  ]);
  expect(dates(merged([], [run(vllm, "2")]))).toEqual([["vllm", "2"]]);
});
