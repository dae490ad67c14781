/**
 * Converts a conversation into the text form that the model was trained on, with the template in the model's own file.
 */
import { Template } from "@huggingface/jinja";
import type { ChatRequest } from "./request/chat-request.ts";
import type { ThinkingTags } from "./output/output-parser.ts";
import { invalid } from "./request/request-error.ts";

/** Tags with which models mark their reasoning. */
const knownThinkingTags: readonly ThinkingTags[] = [
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" },
];

/** The template for a model without one, which was trained to continue texts. */
const plainTemplate =
  "{% for message in messages %}{{ message.role + ': ' + message.content + '\\n\\n' }}{% endfor %}{{ 'assistant:' }}";
const plainStop = ["\nuser:", "\nsystem:"];

export class ChatTemplate {
  readonly #template: Template;
  readonly #specialTokens: { readonly bos_token: string; readonly eos_token: string };
  /** Undefined if the model is not known to reason. */
  readonly thinking: ThinkingTags | undefined;
  /** Texts that end an answer, besides the model's end token. */
  readonly stop: readonly string[];

  constructor(source: string | undefined, specialTokens: { readonly bos_token: string; readonly eos_token: string }) {
    this.#template = new Template(source ?? plainTemplate);
    this.#specialTokens = specialTokens;
    this.thinking = knownThinkingTags.find(({ close }) => source?.includes(close));
    this.stop = source === undefined ? plainStop : [];
  }

  /**
   * Renders the prompt. `guard` is applied to all texts of the client. With `thinkFirst`, the prompt opens the
   * reasoning itself, because a grammar begins after the reasoning. `startsThinking`: the text ends inside the
   * reasoning.
   */
  render(request: ChatRequest, guard: (value: unknown) => unknown, thinkFirst: boolean) {
    let text: string;
    try {
      text = this.#template.render({
        ...(guard(request.templateVariables) as object),
        ...this.#specialTokens,
        messages: guard(request.messages),
        tools: request.toolDefinitions.length > 0 ? guard(request.toolDefinitions) : null,
        enable_thinking: request.thinking,
        thinking: request.thinking,
        add_generation_prompt: true,
      });
    } catch {
      throw invalid("the model's chat template does not take these messages", "messages");
    }
    if (this.thinking === undefined) return { text, startsThinking: false };
    if (text.trimEnd().endsWith(this.thinking.open)) return { text, startsThinking: true };
    if (!thinkFirst || !request.thinking) return { text, startsThinking: false };
    return { text: `${text}${this.thinking.open}\n`, startsThinking: true };
  }
}
