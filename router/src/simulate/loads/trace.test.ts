import { execFileSync } from "node:child_process";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { temporaryDirectory } from "@weiche/shared/testing/temporary-directory.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { checkTrace, openTrace, type TraceOptions } from "./trace.ts";

function open(lines: readonly string[], options: TraceOptions = {}) {
  const file = join(temporaryDirectory(), "trace");
  writeFileSync(file, lines.join("\n"));
  const { trace, mistakes } = checkTrace(file, options);
  return {
    trace,
    mistakes: mistakes.map(({ line, message }) => `${line}: ${message}`),
    load: [...(trace?.load ?? [])],
  };
}

const azure = [
  "TIMESTAMP,ContextTokens,GeneratedTokens",
  "2023-11-16 18:15:46.6805900,374,44",
  "2023-11-16 18:15:50.9951690,396,109",
];

describe("a trace", () => {
  test("of Azure is read with one account and the given model", () => {
    const { trace, load } = open([...azure, ""], { model: "chat" });
    expect(load).toEqual([
      { atMs: 0, account: "unknown", model: "chat", inputTokens: 374, outputTokens: 44 },
      {
        atMs: expect.closeTo(4_314.579, 2) as number,
        account: "unknown",
        model: "chat",
        inputTokens: 396,
        outputTokens: 109,
      },
    ]);
    expect(trace).toMatchObject({
      format: "Azure CSV",
      requests: 2,
      startsAtMs: expect.closeTo(65_746_680.59, 1) as number,
    });
    expect(trace!.assumed).toHaveLength(2);
  });

  test("of Azure's second release, whose times have an offset, is read", () => {
    const lines = [azure[0]!, "2024-05-10 00:00:00.009930+00:00,2162,5", "2024-05-10 02:00:00.017335+02:00,2399,6"];
    expect(open(lines, { model: "m" }).load.map(({ atMs }) => Math.round(atMs))).toEqual([0, 7]);
  });

  test("of BurstGPT, with six or eight columns, is read without the requests that failed", () => {
    const first = ["Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"];
    const lines = [
      ...first,
      "5,ChatGPT,472,18,490,Conversation log",
      "45.5,GPT-4,1087,0,1087,API log",
      "50,GPT-4,9,8,17,API log",
    ];
    const { trace, load } = open(lines);
    expect(load).toEqual([
      { atMs: 0, account: "unknown", model: "ChatGPT", inputTokens: 472, outputTokens: 18 },
      { atMs: 45_000, account: "unknown", model: "GPT-4", inputTokens: 9, outputTokens: 8 },
    ]);
    expect(trace).toMatchObject({ failed: 1, requests: 2 });
    const third = ["Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"];
    expect(open([...third, "19440110.0,s-1,43,GPT-4,906,446,1352,Conversation log"]).load).toEqual([
      { atMs: 0, account: "s-1", conversation: "s-1", model: "GPT-4", inputTokens: 906, outputTokens: 446 },
    ]);
  });

  test("of Mooncake is read, and shared blocks show which requests continue a conversation", () => {
    const line = (timestamp: number, input: number, blocks: readonly number[]) =>
      JSON.stringify({ timestamp, input_length: input, output_length: 5, hash_ids: blocks });
    const lines = [line(0, 1_600, [0, 1, 2, 3]), line(1, 1_600, [0, 4, 5, 6]), line(2, 2_700, [0, 1, 2, 7, 8, 9])];
    const names = open([...lines, line(3, 500, [10])], { model: "m" }).load.map(({ conversation }) => conversation);
    expect(names).toEqual(["conversation-1", "conversation-2", "conversation-1", "conversation-3"]);
  });

  test("of JSON lines with accounts and models is read", () => {
    const line = { timestamp: 2_500, model: "m-small", account: "a", input_length: 3, output_length: 4 };
    expect(open([JSON.stringify(line)]).load).toEqual([
      { atMs: 0, account: "a", model: "m-small", inputTokens: 3, outputTokens: 4 },
    ]);
  });
});

test("a gap of more than a day is part of the load, and the answer names its line", () => {
  const { mistakes, trace, load } = open([...azure, "2023-11-18 18:15:50.995169,4,1"], { model: "m" });
  expect(mistakes).toEqual([]);
  expect(load!.at(-1)!.atMs - load!.at(-2)!.atMs).toBe(172_800_000);
  expect(trace!.assumed).toContain("nothing happens for 2.0 days before line 4: nobody asked for anything");
});

describe("a mistake is told with its line and field:", () => {
  const cells = (...lines: string[]) => [...azure, ...lines];
  const last = "2023-11-16 18:15:51";
  test.each([
    [
      "a text instead of a number",
      cells(`${last},4x4,1`),
      '4: "ContextTokens" must be a whole number from 0 to 10000000, not "4x4"',
    ],
    [
      "a time that is none",
      cells("yesterday,4,1"),
      '4: "TIMESTAMP" must be a time like 2026-11-20T10:00:00.123Z, not "yesterday"',
    ],
    ["a missing field", cells(`${last},4`), "4: the line has 2 fields, but the heading has 3"],
    [
      "a time that goes back",
      cells("2023-11-16 18:15:46,4,1"),
      "4: the time goes back by 4.995 s: sort the lines by time",
    ],
    [
      "a misspelt column",
      [azure[0]!.replace("Context", "Contxt")],
      '1: the column "ContextTokens" is missing; is "ContxtTokens" meant?',
    ],
    ["no model", azure, "2: the trace names no model: give one with --model, or with `model` of the load in the plan"],
    [
      "another file",
      ["a,b"],
      "1: unknown format: a trace is CSV with the columns of Azure or BurstGPT, or has a JSON object per line",
    ],
    ["an empty file", [], "1: the file has no requests"],
    ["a heading alone", [azure[0]!], "1: the file has no requests"],
    ["no JSON", ['{"timestamp":1'], "1: the line is not JSON"],
    [
      "a misspelt field",
      ['{"timestamp":1,"input_lenght":1,"output_length":1}'],
      '1: "input_length" is missing; is "input_lenght" meant?',
    ],
  ])("%s", (what, lines, expected) => {
    expect(open(lines, what === "no model" ? {} : { model: "m" }).mistakes).toEqual([expected]);
  });

  test("an unknown model, once, with the nearest known one", () => {
    const line = JSON.stringify({ timestamp: 1, model: "m-smal", account: "a", input_length: 3, output_length: 4 });
    expect(open([line, line], { models: ["m-small", "m-mid"] }).mistakes).toEqual([
      '1: unknown model "m-smal"; did you mean "m-small"?',
    ]);
  });

  test("at most ten of them", () => {
    expect(open(cells(...Array.from({ length: 100 }, () => "x,1,1"))).mistakes).toHaveLength(10);
  });
});

test.each([
  ["/nowhere/trace.csv", "it does not exist (ENOENT). Check the path"],
  ["/", "it is a folder (EISDIR). Name a file"],
])("a file that cannot be read is named with the reason and what to do: %s", (file, reason) => {
  expect(() => openTrace(file)).toThrow(new StartError(`cannot read ${file}: ${reason}`));
});

describe("a packed file", () => {
  const packed = (bytes: Buffer) => {
    const file = join(temporaryDirectory(), "trace.csv.gz");
    writeFileSync(file, bytes);
    return file;
  };
  const wide = `${azure.join("\n")}\n${"2023-11-16 18:16:00,1,1\n".repeat(20_000)}`;

  test.each([
    ["gzip", gzipSync],
    ["zstd", zstdCompressSync],
  ])("of %s is read like its text, also a second time", (_, pack) => {
    const { load, requests } = openTrace(packed(pack(wide)), { model: "m" });
    expect([requests, [...load].length, [...load].length]).toEqual([20_002, 20_002, 20_002]);
    expect([...load][0]).toMatchObject({ inputTokens: 374, outputTokens: 44 });
  });

  test.each([
    ["is cut off", gzipSync(wide).subarray(0, 900), /is damaged or incomplete, and cannot be unpacked/],
    ["has another packing", Buffer.from("PK\x03\x04\0\0"), /is not text\. Unpack it first/],
    ["has more text than fits into memory", gzipSync(Buffer.alloc(2 ** 28 + 1, "a")), /more than 256 MiB .* Unpack it/],
    ["has one endless line", gzipSync(Buffer.alloc(2 ** 21, "a")), /trace\.csv\.gz:1: the line is too long/],
  ])("that %s is refused with what to do", (_, bytes, message) => {
    expect(() => openTrace(packed(bytes), { model: "m" })).toThrow(message);
  });

  test("that comes through a pipe is refused, because a load is read several times", () => {
    const fifo = join(temporaryDirectory(), "fifo");
    execFileSync("mkfifo", [fifo]);
    // Opened for both directions, a pipe does not wait for its other end.
    const both = openSync(fifo, "r+");
    expect(() => openTrace(fifo, { model: "m" })).toThrow("it is a pipe");
    closeSync(both);
  });
});

test("lines are whole wherever a piece of the file ends", () => {
  const lines = Array.from({ length: 3_000 }, (_, index) =>
    JSON.stringify({
      timestamp: index,
      model: "größer",
      account: `account ${index}`,
      input_length: index,
      output_length: 1,
    }),
  );
  const { load } = open(lines);
  expect(load).toHaveLength(3_000);
  expect(
    load.every(
      ({ account, model, inputTokens }, index) =>
        account === `account ${index}` && model === "größer" && inputTokens === index,
    ),
  ).toBe(true);
});
