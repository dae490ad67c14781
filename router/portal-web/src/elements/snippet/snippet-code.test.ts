import { expect, test } from "vitest";
import { snippetOf, type SnippetRequest } from "./snippet-code.ts";

const facts = { apiUrl: "https://api.example", model: "small-24b" };
const request = {
  model: "small-24b",
  messages: [
    { role: "user", content: "What is 'Weiche'?" },
    { role: "assistant", content: "A switch." },
    { role: "user", content: "Of what?" },
  ],
  reasoning_effort: "low",
  temperature: undefined,
  stop: ["a\nb"],
  tools: [{ type: "function", function: { name: "f", parameters: { "a-b": null, __proto__x: true, deep: [1, {}] } } }],
  stream: true,
  stream_options: { include_usage: true },
};
const codeOf = (kind: Parameters<typeof snippetOf>[0], asked?: SnippetRequest) =>
  snippetOf(kind, { ...facts, ...(asked && { request: asked }) }).code;

test("a request as code has each of its parts, as they are sent", () => {
  const body = /-d '(.*)'$/s.exec(codeOf("curl", request))![1]!.replaceAll(String.raw`'\''`, "'");
  expect(body).toBe(JSON.stringify(request));
  expect(codeOf("python", request)).toContain(`create(
    model="small-24b",
    messages=[
        {"role": "user", "content": "What is 'Weiche'?"},
        {"role": "assistant", "content": "A switch."},
        {"role": "user", "content": "Of what?"},
    ],
    reasoning_effort="low",
    stop=["a\\nb"],
    tools=[{"type": "function", "function": {"name": "f", "parameters": {"a-b": None, "__proto__x": True, "deep": [1, {}]}}}],
    stream=True,
    stream_options={"include_usage": True},
)
for chunk in answer:`);
  expect(codeOf("node", request)).toContain(`create({
  model: "small-24b",
  messages: [
    { role: "user", content: "What is 'Weiche'?" },
    { role: "assistant", content: "A switch." },
    { role: "user", content: "Of what?" },
  ],
  reasoning_effort: "low",
  stop: ["a\\nb"],
  tools: [{ type: "function", function: { name: "f", parameters: { "a-b": null, __proto__x: true, deep: [1, {}] } } }],
  stream: true,
  stream_options: { include_usage: true },
});
for await (`);
});

test("a request that is too long for a word of a command comes from the terminal", () => {
  const long = { ...request, messages: [{ role: "user", content: "x".repeat(100_000) }] };
  expect(codeOf("curl", long)).toBe(
    `${codeOf("curl", request).split("  -d ")[0]}  -d @- <<'END'\n${JSON.stringify(long)}\nEND`,
  );
});

test("with a new key, the code is for a terminal and sets the key first", () => {
  const pasted = (kind: Parameters<typeof snippetOf>[0]) => snippetOf(kind, { ...facts, apiKey: "sk-weiche-1" }).code;
  const first = "export WEICHE_API_KEY='sk-weiche-1'\n";
  expect(pasted("curl")).toBe(first + codeOf("curl"));
  expect(pasted("settings")).toBe(first + codeOf("settings"));
  expect(pasted("python")).toBe(`${first}python3 - <<'END'\n${codeOf("python")}\nEND`);
  for (const kind of ["node", "langchain"] as const)
    expect(pasted(kind)).toBe(`${first}node --input-type=module <<'END'\n${codeOf(kind)}\nEND`);
});

test("one question takes one line, and no effort is sent that nobody chose", () => {
  expect(codeOf("python")).toContain(`    messages=[{"role": "user", "content": "Say hello in one sentence."}],\n)`);
  expect(codeOf("langchain")).toContain(`await chat.invoke("Say hello in one sentence.")`);
  for (const kind of ["curl", "python", "node", "langchain"] as const)
    expect(codeOf(kind)).not.toContain("reasoning_effort");
});
