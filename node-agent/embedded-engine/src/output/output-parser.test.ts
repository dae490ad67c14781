import { createRandom } from "@weiche/shared/random.ts";
import { describe, expect, test } from "vitest";
import type { OutputEvent } from "./output-event.ts";
import { OutputParser, type OutputFormat } from "./output-parser.ts";

const plain: OutputFormat = { startsThinking: false, tools: "none", stop: [] };
const thinking: OutputFormat = { ...plain, thinking: { open: "<think>", close: "</think>" } };
const tools: OutputFormat = { ...thinking, tools: "many" };

interface Parsed {
  reasoning: string;
  content: string;
  calls: { name: string; arguments: string }[];
  stopped: boolean;
}

function parse(format: OutputFormat, pieces: readonly string[]): Parsed {
  const parser = new OutputParser(format);
  const parsed: Parsed = { reasoning: "", content: "", calls: [], stopped: false };
  const take = (event: OutputEvent) => {
    if (event.kind === "tool-call") parsed.calls[event.index] = { name: event.name, arguments: "" };
    else if (event.kind === "tool-arguments") parsed.calls[event.index]!.arguments += event.text;
    else parsed[event.kind] += event.text;
  };
  for (const piece of pieces) {
    for (const event of parser.push(piece)) take(event);
    if (parser.stopped) break;
  }
  parsed.stopped = parser.stopped;
  for (const event of parser.end()) take(event);
  return parsed;
}

/** Parses the same text split at every place and into single characters. */
function everyCut(format: OutputFormat, text: string): Parsed {
  const whole = parse(format, [text]);
  for (let at = 0; at <= text.length; at++)
    expect(parse(format, [text.slice(0, at), text.slice(at)]), `cut at ${at}`).toEqual(whole);
  expect(parse(format, text.split("")), "in single characters").toEqual(whole);
  return whole;
}

const call = (name: string, args: string) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

describe("thinking", () => {
  test("is separated from the content, without its tags and the white space around them", () => {
    expect(everyCut(thinking, "\n<think>\nFirst I plan. \n</think>\n\nThe answer is 42!\n")).toEqual({
      reasoning: "First I plan.",
      content: "The answer is 42!\n",
      calls: [],
      stopped: false,
    });
  });

  test("begins with the first token if the prompt has opened it", () => {
    expect(everyCut({ ...thinking, startsThinking: true }, "I plan.</think>Done")).toMatchObject({
      reasoning: "I plan.",
      content: "Done",
    });
  });

  test("without an end is all reasoning", () => {
    expect(everyCut(thinking, "<think>still </thi")).toMatchObject({ reasoning: "still </thi", content: "" });
  });

  test("that is empty leaves no reasoning", () => {
    expect(everyCut(thinking, "<think>\n\n</think>\n\nHi")).toMatchObject({ reasoning: "", content: "Hi" });
  });

  test("a tag in the middle of the content is content", () => {
    const text = "Use <think> and </think> as tags.";
    expect(everyCut(thinking, text)).toMatchObject({ reasoning: "", content: text });
  });

  test("that is off leaves the text unchanged, including white space", () => {
    expect(everyCut(plain, "\n <think>x</think>\n")).toMatchObject({ reasoning: "", content: "\n <think>x</think>\n" });
    expect(everyCut(thinking, "\n x\n")).toMatchObject({ content: "\n x\n" });
  });

  test("is reported while it lasts", () => {
    const parser = new OutputParser(thinking);
    const seen = ["<think>", "a", "</th", "ink>", "b"].map((piece) => {
      parser.push(piece);
      return parser.thinking;
    });
    expect(seen).toEqual([true, true, true, false, false]);
  });
});

describe("stop strings", () => {
  test("end the content before them and are never shown", () => {
    expect(everyCut({ ...plain, stop: ["END"] }, "one EN two END three")).toMatchObject({
      content: "one EN two ",
      stopped: true,
    });
  });

  test("whose beginning leads to nothing are shown", () => {
    expect(everyCut({ ...plain, stop: ["</answer>"] }, "a </ans")).toMatchObject({
      content: "a </ans",
      stopped: false,
    });
    expect(everyCut({ ...plain, stop: ["aab"] }, "aaab")).toMatchObject({ content: "a", stopped: true });
  });

  test("end the answer at the first one that is complete", () => {
    expect(everyCut({ ...plain, stop: ["abc", "b"] }, "xabc")).toMatchObject({ content: "xa", stopped: true });
    expect(everyCut({ ...plain, stop: ["bc", "abc"] }, "xabc")).toMatchObject({ content: "x", stopped: true });
  });

  test("have no effect in reasoning and calls", () => {
    const text = `<think>a.b</think>c${call("f", '{"x": "a.b"}')}`;
    expect(everyCut({ ...tools, stop: ["."] }, text)).toEqual({
      reasoning: "a.b",
      content: "c",
      calls: [{ name: "f", arguments: '{"x": "a.b"}' }],
      stopped: false,
    });
  });

  test("hold back only text that may still become one", () => {
    const parser = new OutputParser({ ...plain, stop: ["\n\n"] });
    expect(parser.push("a\n")).toEqual([{ kind: "content", text: "a" }]);
    expect(parser.push("b")).toEqual([{ kind: "content", text: "\nb" }]);
  });
});

describe("tool calls", () => {
  test("have their arguments in the model's spelling", () => {
    const text = `<think>Look.</think>\n\nI look.\n${call("get_weather", '{"city": "Köln", "unit":"C"}')}`;
    expect(everyCut(tools, text)).toEqual({
      reasoning: "Look.",
      content: "I look.",
      calls: [{ name: "get_weather", arguments: '{"city": "Köln", "unit":"C"}' }],
      stopped: false,
    });
  });

  test("pass on their arguments before the call is complete", () => {
    const parser = new OutputParser(tools);
    parser.push('<tool_call>{"name": "f", "arguments": {"a": ');
    expect(parser.push('"long')).toEqual([{ kind: "tool-arguments", index: 0, text: '"long' }]);
  });

  test("are numbered if there are several", () => {
    expect(everyCut(tools, `${call("a", "{}")}\n${call("b", '{"x":[1,{"y":2}]}')}\n`)).toMatchObject({
      content: "",
      calls: [
        { name: "a", arguments: "{}" },
        { name: "b", arguments: '{"x":[1,{"y":2}]}' },
      ],
    });
  });

  test("keep brackets, quotes and tags inside strings as text", () => {
    const args = '{"x": "}\\" </tool_call> {", "y": "\\\\"}';
    expect(everyCut(tools, call("f", args)).calls).toEqual([{ name: "f", arguments: args }]);
  });

  test("may have another order, other names and arguments as a string", () => {
    const other = '<tool_call>{"parameters": {"a": 1}, "name": "f"}</tool_call>';
    expect(everyCut(tools, other).calls).toEqual([{ name: "f", arguments: '{"a":1}' }]);
    const quoted = '<tool_call>{"name": "f", "arguments": "{\\"a\\":1}"}</tool_call>';
    expect(everyCut(tools, quoted).calls).toEqual([{ name: "f", arguments: '{"a":1}' }]);
    expect(everyCut(tools, '<tool_call>{"name": "f"}</tool_call>').calls).toEqual([{ name: "f", arguments: "{}" }]);
  });

  test("that turn out to be text are shown unchanged", () => {
    const text = "<tool_call>not json</tool_call>";
    expect(everyCut(tools, text)).toMatchObject({ content: text, calls: [] });
  });

  test("that are cut off are incomplete, and ignored without a name", () => {
    expect(everyCut(tools, '<tool_call>\n{"name": "f", "arguments": {"a').calls).toEqual([
      { name: "f", arguments: '{"a' },
    ]);
    expect(everyCut(tools, 'So: <tool_call>\n{"name": "f')).toMatchObject({ content: "So:", calls: [] });
  });

  test("count without their closing tag if they are complete", () => {
    expect(everyCut(tools, '<tool_call>{"name": "f", "arguments": "{}"}').calls).toHaveLength(1);
    expect(everyCut(tools, '<tool_call>{"name": "f", "arguments": {}}').calls).toHaveLength(1);
  });

  test("end the answer after the first if only one is allowed", () => {
    expect(everyCut({ ...tools, tools: "one" }, `${call("a", "{}")}${call("b", "{}")}`)).toMatchObject({
      calls: [{ name: "a" }],
      stopped: true,
    });
  });

  test("are text if there are no tools", () => {
    expect(everyCut(thinking, call("f", "{}"))).toMatchObject({ content: call("f", "{}"), calls: [] });
  });
});

test("the result never depends on where the text was split", () => {
  const fragments = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<", "th", "\n", " ", "{", "}", '"', "\\"];
  const more = ['{"name": "f", "arguments": {', '"a": 1', "}}", "stop", "sto", "wort", "ä🙂"];
  for (let seed = 1; seed <= 3000; seed++) {
    const random = createRandom(seed);
    const text = Array.from({ length: random.below(14) }, () => random.pick([...fragments, ...more])).join("");
    const format: OutputFormat = {
      ...(random.chance(0.7) && thinking),
      startsThinking: false,
      tools: random.pick(["none", "one", "many"]),
      stop: random.chance(0.5) ? ["stop", "wort<"] : [],
    };
    const pieces: string[] = [];
    for (let at = 0; at < text.length;) {
      const length = 1 + random.below(6);
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    expect(parse(format, pieces), `seed ${seed}: ${JSON.stringify(text)}`).toEqual(parse(format, [text]));
  }
});
