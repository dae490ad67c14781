/** Programs that send one request to a model, with the key from the environment. Pure. */
export const snippetKinds = ["curl", "python", "node", "langchain", "settings"] as const;
export type SnippetKind = (typeof snippetKinds)[number];

/** The variable from which the examples read the key. */
export const keyVariable = "WEICHE_API_KEY";

/** The body of a chat completion. */
export interface SnippetRequest {
  readonly model: string;
  readonly messages: readonly object[];
  readonly stream?: boolean | null;
}

interface SnippetFacts {
  /** Base URL without /v1. */
  readonly apiUrl: string;
  readonly model: string;
  /** The request that the code sends, exactly. Defaults to an example. */
  readonly request?: SnippetRequest;
  /** If given, the code is for a terminal and sets the key first. Otherwise the key must be in the environment. */
  readonly apiKey?: string;
}

interface SnippetText {
  /** The command to run once before, or null. */
  readonly install: string | null;
  readonly code: string;
}

const exampleQuestion = "Say hello in one sentence.";

export function snippetOf(kind: SnippetKind, facts: SnippetFacts): SnippetText {
  const { model, request = { model, messages: [{ role: "user", content: exampleQuestion }] }, apiKey } = facts;
  const { install, code } = writers[kind](baseOf(facts), request);
  return { install, code: apiKey === undefined ? code : inTerminal(kind, code, apiKey) };
}

/** Programs that read their code from the terminal. */
const interpreters: Partial<Record<SnippetKind, string>> = {
  python: "python3 -",
  node: "node --input-type=module",
  langchain: "node --input-type=module",
};

function inTerminal(kind: SnippetKind, code: string, apiKey: string): string {
  const interpreter = interpreters[kind];
  const run = interpreter === undefined ? code : `${interpreter} <<'END'\n${code}\nEND`;
  return `export ${keyVariable}=${shell(apiKey)}\n${run}`;
}

/** By default, LangChain for Python sends another model's token ids instead of texts. */
export function embeddingsSnippet(facts: SnippetFacts): SnippetText {
  return {
    install: "pip install langchain-openai",
    code: `import os
from langchain_openai import OpenAIEmbeddings

embeddings = OpenAIEmbeddings(
    base_url=${text(baseOf(facts))},
    api_key=os.environ["${keyVariable}"],
    model=${text(facts.model)},
    check_embedding_ctx_length=False,
)
print(len(embeddings.embed_query("Hello")))`,
  };
}

function baseOf({ apiUrl }: SnippetFacts): string {
  return `${apiUrl.replace(/\/$/, "")}/v1`;
}

type Writer = (base: string, request: SnippetRequest) => SnippetText;

/** A longer word of a command is refused by Linux. */
const wordCharactersMax = 100_000;

const writers: Readonly<Record<SnippetKind, Writer>> = {
  curl(base, request) {
    const body = JSON.stringify(request);
    return {
      install: null,
      code: `curl ${request.stream ? "-N " : ""}${shell(`${base}/chat/completions`)} \\
  -H "Authorization: Bearer $${keyVariable}" \\
  -H "Content-Type: application/json" \\
  -d ${body.length < wordCharactersMax ? shell(body) : `@- <<'END'\n${body}\nEND`}`,
    };
  },
  python: (base, request) => ({
    install: "pip install openai",
    code: `import os
from openai import OpenAI

client = OpenAI(base_url=${text(base)}, api_key=os.environ["${keyVariable}"])
answer = client.chat.completions.create(
${argumentsOf(request, (name) => `${name}=`, python, "    ")}
)
${
  request.stream
    ? `for chunk in answer:
    for choice in chunk.choices:
        print(choice.delta.content or choice.delta.tool_calls or "", end="", flush=True)`
    : "print(answer.choices[0].message.content)"
}`,
  }),
  node: (base, request) => ({
    install: "npm install openai",
    code: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${text(base)}, apiKey: process.env.${keyVariable} });
const answer = await client.chat.completions.create({
${argumentsOf(request, (name) => `${name}: `, script, "  ")}
});
${
  request.stream
    ? `for await (const { choices } of answer)
  for (const { delta } of choices) process.stdout.write(delta.content ?? JSON.stringify(delta.tool_calls) ?? "");`
    : "console.log(answer.choices[0].message.content);"
}`,
  }),
  // Only the example is shown this way, because LangChain has words of its own for parameters.
  langchain: (base, { model }) => ({
    install: "npm install @langchain/openai",
    code: `import { ChatOpenAI } from "@langchain/openai";

const chat = new ChatOpenAI({
  model: ${text(model)},
  apiKey: process.env.${keyVariable},
  configuration: { baseURL: ${text(base)} },
});
const answer = await chat.invoke(${text(exampleQuestion)});
console.log(answer.content);`,
  }),
  // Programs with an OpenAI client, such as agents and editors, read these variables or have fields for them.
  settings: (base, { model }) => ({
    install: null,
    code: `export OPENAI_BASE_URL=${shell(base)}
export OPENAI_API_KEY="$${keyVariable}"
export OPENAI_MODEL=${shell(model)}`,
  }),
};

type Literal = (value: unknown) => string;

function argumentsOf(request: SnippetRequest, named: (name: string) => string, write: Literal, indent: string): string {
  return members(request)
    .map(([name, value]) => argument(named(name), value, write, indent))
    .join("\n");
}

/** Writes an argument on a line, or a line for each of several elements of a list. */
function argument(name: string, value: unknown, write: Literal, indent: string): string {
  if (!Array.isArray(value) || value.length < 2) return `${indent}${name}${write(value)},`;
  const step = indent === "    " ? "        " : "    ";
  return `${indent}${name}[\n${value.map((one) => `${step}${write(one)},\n`).join("")}${indent}],`;
}

function python(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${members(value)
    .map(([name, one]) => `${text(name)}: ${python(one)}`)
    .join(", ")}}`;
}

function script(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(script).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const named = (name: string) =>
    name === "__proto__" ? `["__proto__"]` : /^[A-Za-z_]\w*$/.test(name) ? name : text(name);
  const written = members(value).map(([name, one]) => `${named(name)}: ${script(one)}`);
  return written.length === 0 ? "{}" : `{ ${written.join(", ")} }`;
}

/** Without those that JSON leaves out. */
function members(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, one]) => one !== undefined);
}

/** Quotes a text as JSON, which is also valid in Python and JavaScript. */
function text(value: string): string {
  return JSON.stringify(value);
}

/** Quotes any text as one word of a POSIX shell. */
function shell(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}
