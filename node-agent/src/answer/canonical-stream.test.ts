import { expect, test } from "vitest";
import { AnswerFull } from "./collected.ts";
import type { ChoiceDelta } from "../engines/dialects/dialect.ts";
import { CanonicalStream, type AnswerSink } from "./canonical-stream.ts";

/** Records its calls. */
class Notes implements AnswerSink {
  readonly lines: string[] = [];

  role(choice: number): void {
    this.lines.push(`${choice} role`);
  }

  reasoning(choice: number, text: string, logprobs: object | undefined): void {
    this.lines.push(`${choice} reasoning ${text}${logprobs ? " +p" : ""}`);
  }

  content(choice: number, text: string, logprobs: object | undefined): void {
    this.lines.push(`${choice} content ${text}${logprobs ? " +p" : ""}`);
  }

  toolCall(choice: number, piece: Parameters<AnswerSink["toolCall"]>[1], logprobs: object | undefined): void {
    const { index, opening, arguments: json } = piece;
    this.lines.push(
      `${choice} call ${index} ${opening ? `${opening.id} ${opening.name} ` : ""}${json}${logprobs ? " +p" : ""}`,
    );
  }

  finish(choice: number, reason: string): void {
    this.lines.push(`${choice} finish ${reason}`);
  }
}

function run(
  deltas: readonly (Partial<ChoiceDelta> | number)[],
  more: { choices?: number; stopsAsToolCalls?: boolean } = {},
) {
  const notes = new Notes();
  const unknown: string[] = [];
  const stream = new CanonicalStream(notes, {
    ...{ choices: 1, stopsAsToolCalls: false, callIdPrefix: "call-r" },
    onUnknownFinish: (reason) => unknown.push(reason),
    ...more,
  });
  for (const delta of deltas) stream.take({ choices: typeof delta === "number" ? [] : [{ index: 0, ...delta }] });
  if (stream.isWhole) stream.end();
  return { lines: notes.lines, stream, unknown };
}

test("a chunk with all parts is split in order, and its log probabilities go with the first part [S6.3]", () => {
  const everything = {
    ...{ reasoning: "r", content: "c", finish: "stop", logprobs: {} },
    toolCalls: [{ index: 0, id: "i", name: "f", arguments: '{"a":1}' }],
  };
  expect(run([everything]).lines).toEqual([
    ...["0 role", "0 reasoning r +p", "0 content c", '0 call 0 i f {"a":1}', "0 finish tool_calls"],
  ]);
});

test("a repeated role and empty text are dropped", () => {
  expect(run([{ content: "" }, {}, { reasoning: "", content: "" }, { content: "c" }, 0]).lines).toEqual([
    ...["0 role", "0 content c"],
  ]);
});

test("a token without text keeps its log probability", () => {
  expect(run([{ logprobs: {} }, { finish: "stop", logprobs: {} }]).lines).toEqual([
    ...["0 role", "0 content  +p", "0 content  +p", "0 finish stop"],
  ]);
});

test("blank lines between reasoning and answer are dropped, however they are split, and keep their log probabilities", () => {
  const thought = { reasoning: "r" };
  expect(run([thought, { content: "\n\n" }, { content: " \n So" }, { content: "\n it" }]).lines).toEqual([
    ...["0 role", "0 reasoning r", "0 content So", "0 content \n it"],
  ]);
  expect(run([{ ...thought, content: "\n" }, { content: "\n", logprobs: {} }, { finish: "stop" }]).lines).toEqual([
    ...["0 role", "0 reasoning r", "0 content  +p", "0 finish stop"],
  ]);
  expect(run([{ content: "\n\n" }, { content: "  So" }]).lines).toEqual(["0 role", "0 content \n\n", "0 content   So"]);
});

test("a call has its id and name once, and always has arguments [S5.6]", () => {
  const piece = (call: object) => ({ toolCalls: [{ index: 0, ...call }] });
  expect(
    run([piece({ name: "f" }), piece({ id: "x", name: "f", arguments: '{"' }), piece({ arguments: "a" })]).lines,
  ).toEqual(["0 role", "0 call 0 call-r-0-0 f ", '0 call 0 {"', "0 call 0 a"]);
});

test("a call without arguments gets an empty object before the finish, unless the token limit cut it off [S5.6]", () => {
  const calls = {
    toolCalls: [
      { index: 0, id: "i", name: "f" },
      { index: 1, id: "j", name: "g", arguments: "{}" },
    ],
  };
  // An empty object waits for the end, because some engines send it before the arguments.
  const opened = ["0 role", "0 call 0 i f ", "0 call 1 j g "];
  const end = ["0 call 0 {}", "0 call 1 {}", "0 finish tool_calls"];
  expect(run([calls, { finish: "tool_calls" }]).lines).toEqual([...opened, ...end]);
  expect(run([calls, { finish: "length" }]).lines).toEqual([...opened, "0 call 1 {}", "0 finish length"]);
});

test.each([
  ["stop", false, false, "stop"],
  ["length", true, true, "length"],
  ["model_length", false, true, "length"],
  ["max_tokens", true, false, "length"],
  ["tool_calls", false, false, "tool_calls"],
  ["stop", true, false, "tool_calls"],
  ["stop", false, true, "tool_calls"],
  ["repetition", false, false, "stop"],
  ["repetition", true, false, "tool_calls"],
  ["eos", false, false, "stop"],
  ["content_filter", true, false, "tool_calls"],
])(
  "%s with a call: %s, with an unmet demand for a call: %s, becomes %s",
  (finish, withCall, stopsAsToolCalls, told) => {
    const call = withCall ? [{ toolCalls: [{ index: 0, name: "f" }] }] : [];
    expect(run([...call, { finish }], { stopsAsToolCalls }).lines.at(-1)).toBe(`0 finish ${told}`);
  },
);

test("an unknown finish reason is reported, and a known one is not [S5.7]", () => {
  expect(run([{ finish: "stop_sequence" }]).unknown).toEqual(["stop_sequence"]);
  for (const finish of ["stop", "length", "tool_calls", "repetition"]) expect(run([{ finish }]).unknown).toEqual([]);
});

test("an engine that fails after a finish reason has not finished", () => {
  expect(() => run([{ content: "c", finish: "stop" }, { finish: "abort" }])).toThrow("ended the answer itself");
});

test.each(["abort", "error"])("an answer that ends with '%s' counts as unfinished [S5.7]", (finish) => {
  expect(() => run([{ content: "c" }, { finish }])).toThrow("ended the answer itself");
});

test("an answer is complete when each of its choices has finished", () => {
  const { stream } = run([{ content: "a" }], { choices: 2 });
  expect(stream.isWhole).toBe(false);
  stream.take({ choices: [{ index: 0, finish: "stop" }] });
  stream.take({ choices: [{ index: 0, finish: "stop" }] });
  expect(stream.isWhole).toBe(false);
  stream.take({ choices: [{ index: 1, finish: "length" }] });
  expect(stream.isWhole).toBe(true);
});

test("output is anything but a role", () => {
  expect(run([{}, { content: "" }, 0]).stream.hasOutput).toBe(false);
  for (const delta of [
    { content: "c" },
    { reasoning: "r" },
    { toolCalls: [{ index: 0, name: "f" }] },
    { finish: "stop" },
  ])
    expect(run([delta]).stream.hasOutput).toBe(true);
});

test("an empty piece of a call after the finish is ignored", () => {
  const calls = (text: string) => ({ toolCalls: [{ index: 0, name: text && "f", arguments: text }] });
  const end = { finish: "tool_calls" };
  expect(run([calls("{}"), end, calls(""), { toolCalls: [{ arguments: "\n" }] }]).lines.slice(-2)).toEqual([
    ...["0 call 0 {}", "0 finish tool_calls"],
  ]);
});

test.each<[string, Partial<ChoiceDelta>[], string[]]>([
  [
    "every chunk",
    [
      { reasoning: "r", finish: "stop" },
      { content: "a", finish: "stop" },
      { content: "b", finish: "stop" },
    ],
    ["reasoning r", "content a", "content b", "finish stop"],
  ],
  [
    "the role, and `length` at the end",
    [{ finish: "stop" }, { content: "a" }, { finish: "length" }],
    ["content a", "finish length"],
  ],
  [
    "`length`, and `stop` again",
    [{ content: "a", finish: "length" }, { finish: "stop" }],
    ["content a", "finish length"],
  ],
  [
    "`length` too early",
    [{ content: "a", finish: "length" }, { content: "b" }, { finish: "stop" }],
    ["content a", "content b", "finish stop"],
  ],
  [
    "a text before a call",
    [{ content: "a", finish: "stop" }, { toolCalls: [{ index: 0, id: "i", name: "f" }] }, { finish: "tool_calls" }],
    ["content a", "call 0 i f ", "call 0 {}", "finish tool_calls"],
  ],
])(
  "the text after a finish reason that came with %s is delivered, and the answer ends once [S5.7]",
  (_name, deltas, lines) => {
    const { lines: told, stream } = run(deltas);
    expect(told).toEqual(["role", ...lines].map((line) => `0 ${line}`));
    expect(stream.hasContinued).toBe(deltas.length > 2);
  },
);

test("text of another answer after the finish is refused, unless the engine gives each chunk its own id", () => {
  const play = (ids: readonly (string | undefined)[]) => {
    const stream = new CanonicalStream(new Notes(), {
      ...{ choices: 1, stopsAsToolCalls: false, callIdPrefix: "", onUnknownFinish: () => {} },
    });
    const deltas = [{ content: "a" }, { content: "b" }, { finish: "stop" }, { content: "c" }];
    for (const [at, delta] of deltas.entries()) stream.take({ id: ids[at], choices: [{ index: 0, ...delta }] });
  };
  expect(() => play(["x", "x", "x", "y"])).toThrow("another answer after the finish");
  for (const ids of [["x", "x", "x", "x"], ["w", "x", "y", "z"], ["x", "x", "x", undefined], []]) play(ids);
});

test("a limit ends every answer with `length` that the engine has not finished, and an only one in any case", () => {
  const { lines, stream } = run([{ content: "a", finish: "stop" }], { choices: 3 });
  stream.take({ choices: [{ index: 1, content: "b" }] });
  stream.endAtLimit();
  expect(lines.slice(-4)).toEqual(["0 finish stop", "1 finish length", "2 role", "2 finish length"]);
  const alone = run([{ content: "a" }]);
  alone.stream.take({ choices: [{ index: 0, content: "b", finish: "stop" }] });
  alone.stream.endAtLimit();
  expect(alone.lines.at(-1)).toBe("0 finish length");
});

test("an impossible order of pieces is refused", () => {
  expect(() => run([{ index: 1 }])).toThrow("not requested");
  expect(() => run([{ toolCalls: [{ index: 0, arguments: "{}" }] }])).toThrow("without a name");
});

test("an answer is full after 1,024 calls", () => {
  const calls = Array.from({ length: 1_025 }, (_, index) => ({ index, name: "f" }));
  expect(run([{ toolCalls: calls.slice(1) }]).lines).toHaveLength(1_025);
  expect(() => run([{ toolCalls: calls }])).toThrow(AnswerFull);
});
