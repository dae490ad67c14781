/** Programs that ask a model one question, with the key from the environment. Pure. */
export const snippetKinds = ["curl", "python", "node", "langchain", "settings"] as const;
export type SnippetKind = (typeof snippetKinds)[number];

/** The variable from which the examples read the key. */
export const keyVariable = "WEICHE_API_KEY";

export interface ChatMessage {
  readonly role: "user" | "assistant";
  readonly content: string;
}

export interface SnippetRequest {
  readonly messages: readonly ChatMessage[];
  /** If undefined, the model's default applies. */
  readonly reasoningEffort?: string;
}

interface SnippetFacts {
  /** Base URL without /v1. */
  readonly apiUrl: string;
  readonly model: string;
  readonly request?: SnippetRequest;
  /** If given, the code is for a terminal and sets the key first. Otherwise the key must be in the environment. */
  readonly apiKey?: string;
}

interface SnippetText {
  /** The command to run once before, or null. */
  readonly install: string | null;
  readonly code: string;
}

export function snippetOf(kind: SnippetKind, facts: SnippetFacts): SnippetText {
  const { request = { messages: [{ role: "user", content: "Say hello in one sentence." }] } } = facts;
  const { install, code } = writers[kind](baseOf(facts), facts.model, request);
  return { install, code: facts.apiKey === undefined ? code : inTerminal(kind, code, facts.apiKey) };
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

type Writer = (base: string, model: string, request: SnippetRequest) => SnippetText;

const writers: Readonly<Record<SnippetKind, Writer>> = {
  curl: (base, model, { messages, reasoningEffort }) => ({
    install: null,
    code: `curl ${shell(`${base}/chat/completions`)} \\
  -H "Authorization: Bearer $${keyVariable}" \\
  -H "Content-Type: application/json" \\
  -d ${shell(JSON.stringify({ model, messages, reasoning_effort: reasoningEffort }))}`,
  }),
  python: (base, model, { messages, reasoningEffort }) => ({
    install: "pip install openai",
    code: `import os
from openai import OpenAI

client = OpenAI(base_url=${text(base)}, api_key=os.environ["${keyVariable}"])
answer = client.chat.completions.create(
    model=${text(model)},
    messages=${listed(messages, ({ role, content }) => `{"role": ${text(role)}, "content": ${text(content)}}`, "    ")},
${reasoningEffort === undefined ? "" : `    reasoning_effort=${text(reasoningEffort)},\n`})
print(answer.choices[0].message.content)`,
  }),
  node: (base, model, { messages, reasoningEffort }) => ({
    install: "npm install openai",
    code: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${text(base)}, apiKey: process.env.${keyVariable} });
const answer = await client.chat.completions.create({
  model: ${text(model)},
  messages: ${listed(messages, messageInScript, "  ")},
${reasoningEffort === undefined ? "" : `  reasoning_effort: ${text(reasoningEffort)},\n`}});
console.log(answer.choices[0].message.content);`,
  }),
  langchain: (base, model, { messages, reasoningEffort }) => ({
    install: "npm install @langchain/openai",
    code: `import { ChatOpenAI } from "@langchain/openai";

const chat = new ChatOpenAI({
  model: ${text(model)},
  apiKey: process.env.${keyVariable},
  configuration: { baseURL: ${text(base)} },
${reasoningEffort === undefined ? "" : `  modelKwargs: { reasoning_effort: ${text(reasoningEffort)} },\n`}});
const answer = await chat.invoke(${messages.length === 1 ? text(messages[0]!.content) : listed(messages, messageInScript, "")});
console.log(answer.content);`,
  }),
  // Programs with an OpenAI client, such as agents and editors, read these variables or have fields for them.
  settings: (base, model) => ({
    install: null,
    code: `export OPENAI_BASE_URL=${shell(base)}
export OPENAI_API_KEY="$${keyVariable}"
export OPENAI_MODEL=${shell(model)}`,
  }),
};

function messageInScript({ role, content }: ChatMessage): string {
  return `{ role: ${text(role)}, content: ${text(content)} }`;
}

/** Writes a list on one line, or a line for each of several messages. */
function listed(messages: readonly ChatMessage[], write: (message: ChatMessage) => string, indent: string): string {
  if (messages.length === 1) return `[${write(messages[0]!)}]`;
  const step = indent === "    " ? "    " : "  ";
  return `[\n${messages.map((message) => `${indent}${step}${write(message)},\n`).join("")}${indent}]`;
}

/** Quotes a text as JSON, which is also valid in Python and JavaScript. */
function text(value: string): string {
  return JSON.stringify(value);
}

/** Quotes any text as one word of a POSIX shell. */
function shell(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}
