/** The fields that chats and completions share. */
import { Type } from "typebox";
import { optional, worded } from "./body-reader.ts";

export const stopsMax = 64;
/** Maximum of `top_logprobs`. No engine returns more alternatives per token. */
export const logprobsMax = 20;

/** If the service sets no bound, the engine's own bound applies. */
export const generationFields = {
  model: Type.String({ minLength: 1, description: "API id of a model that the key may use." }),
  max_tokens: optional(
    Type.Integer({ minimum: 1, description: "Maximum number of output tokens, including reasoning." }),
  ),
  temperature: optional(Type.Number({ minimum: 0, maximum: 2 })),
  top_p: optional(Type.Number({ minimum: 0, maximum: 1, description: "Alternative to temperature." })),
  stop: optional(
    Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: stopsMax })], {
      description: `Output ends before any of these sequences. At most ${stopsMax}.`,
    }),
  ),
  n: optional(
    Type.Integer({
      minimum: 1,
      maximum: 128,
      description: "Number of answers. Each is billed as output. Each model has its own maximum, usually 8.",
    }),
  ),
  seed: optional(
    // JSON.parse rounds 2^63-1 up. The node keeps the digits and refuses larger values.
    worded(Type.Integer({ minimum: -(2 ** 63), maximum: 2 ** 63 }), "must be an integer of 64 bits"),
  ),
  presence_penalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
  frequency_penalty: optional(Type.Number({ minimum: -2, maximum: 2 })),
  stream: optional(Type.Boolean({ description: "Answer as Server-Sent Events." })),
  stream_options: optional(
    Type.Object({
      include_usage: optional(Type.Boolean({ description: "Adds a final chunk with token counts." })),
    }),
  ),
};
