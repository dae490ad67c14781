import { expect, test } from "vitest";
import { snippetOf, type SnippetRequest } from "./snippet-code.ts";

const facts = { apiUrl: "https://api.example", model: "small-24b" };
const request: SnippetRequest = {
  messages: [
    { role: "user", content: "What is 'Weiche'?" },
    { role: "assistant", content: "A switch." },
    { role: "user", content: "Of what?" },
  ],
  reasoningEffort: "low",
};
const codeOf = (kind: Parameters<typeof snippetOf>[0], asked?: SnippetRequest) =>
  snippetOf(kind, { ...facts, ...(asked && { request: asked }) }).code;

test("a request as code has its whole conversation and its reasoning effort", () => {
  const body = /-d '(.*)'$/s.exec(codeOf("curl", request))![1]!.replaceAll(String.raw`'\''`, "'");
  expect(JSON.parse(body)).toEqual({ model: "small-24b", messages: request.messages, reasoning_effort: "low" });
  expect(codeOf("python", request)).toContain(`    messages=[
        {"role": "user", "content": "What is 'Weiche'?"},
        {"role": "assistant", "content": "A switch."},
        {"role": "user", "content": "Of what?"},
    ],
    reasoning_effort="low",
)`);
  expect(codeOf("node", request)).toContain(`  messages: [
    { role: "user", content: "What is 'Weiche'?" },
    { role: "assistant", content: "A switch." },
    { role: "user", content: "Of what?" },
  ],
  reasoning_effort: "low",
});`);
  expect(codeOf("langchain", request)).toContain(`  modelKwargs: { reasoning_effort: "low" },
});
const answer = await chat.invoke([
  { role: "user", content: "What is 'Weiche'?" },`);
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
