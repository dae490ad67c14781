/** Chats with an engine, for tests. */
import OpenAI from "openai";
import { expect } from "vitest";
import { eventsOf, post } from "./embedded-process.ts";

export type Message = OpenAI.ChatCompletionMessage & { reasoning_content?: string };
export type ToolCallDelta = OpenAI.ChatCompletionChunk.Choice.Delta.ToolCall;

interface Chunk {
  choices: { index: number; delta: Record<string, unknown>; finish_reason: string | null; logprobs: unknown }[];
  usage?: { completion_tokens: number; prompt_tokens: number };
}

export const greedy = { model: "tiny", temperature: 0 } as const;
export const ask = (content: string) => ({ ...greedy, messages: [{ role: "user" as const, content }] });

/** Uses OpenAI's own client. Only streams are read by hand, because the client hides some fields. */
export function chatWith(url: string) {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  const chat = (body: object) => client.chat.completions.create(body as OpenAI.ChatCompletionCreateParamsNonStreaming);
  const message = async (body: object) => (await chat(body)).choices[0]!.message as Message;
  const chunksOf = async (body: object): Promise<Chunk[]> => {
    const options = { stream: true, stream_options: { include_usage: true } };
    const events = await eventsOf(await post(url, "/v1/chat/completions", { ...body, ...options }));
    expect(events.pop()).toBe("[DONE]");
    return events as Chunk[];
  };
  return { chat, message, chunksOf };
}

export const joined = (chunks: readonly Chunk[], field: string) =>
  chunks.map(({ choices }) => (choices[0]?.delta[field] as string | undefined) ?? "").join("");
