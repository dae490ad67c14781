/** The body that an engine gets for a client's chat, by the rules of its model. */
import type { ModelRules } from "@weiche/shared/catalogue.ts";
import { writeKept } from "@weiche/shared/http/kept-json.ts";
import { asId } from "@weiche/shared/ids.ts";
import { dialects } from "../../src/engines/dialects/all.ts";
import type { DialectName } from "../../src/engines/engine.ts";
import { readChatRequest } from "../../src/intake/chat-request.ts";

export const plain: ModelRules = {
  id: asId("m"),
  category: "language",
  contextTokens: 1_024,
  reasoning: { mode: "unavailable", efforts: [], templateKwargsAccepted: true },
  toolsEnforced: true,
};
export const messages = [{ role: "user", content: "hi" }];
export const scope = (rules: Partial<ModelRules> = {}) => ({ rules: { ...plain, ...rules } });

/** Returns the body for an engine of this dialect. */
export function said(
  body: object,
  rules?: Partial<ModelRules>,
  dialect: DialectName = "openai",
): Record<string, unknown> {
  const request = readChatRequest({ messages, ...body }, scope(rules));
  return JSON.parse(writeKept(dialects[dialect].chatBody(request))) as Record<string, unknown>;
}
