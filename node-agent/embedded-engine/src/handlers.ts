/** The paths that need the model. They are loaded with it, after the port is open. */
import type { Call } from "./request/call.ts";
import { chatCompletions } from "./chat-completions.ts";
import { completions } from "./completions.ts";
import { embeddings } from "./embeddings.ts";

export const handlers: ReadonlyMap<string, (call: Call) => Promise<void>> = new Map([
  ["/v1/chat/completions", chatCompletions],
  ["/v1/completions", completions],
  ["/v1/embeddings", embeddings],
]);
