/** Reads a node's list of the requests that it serves. */
import { Type } from "typebox";
import { Compile } from "typebox/compile";
import { nodeRequestsMax, type NodeRequest } from "@weiche/shared/node-protocol.ts";
import { parseJson } from "@weiche/shared/json.ts";

const word = Type.String({ minLength: 1, maxLength: 200 });
const shape = Compile(
  Type.Array(
    Type.Object({
      requestId: word,
      attempt: Type.Integer(),
      model: word,
      slot: Type.Optional(word),
      state: Type.Enum(["reading", "waiting", "answering"]),
      completionTokens: Type.Integer({ minimum: 0 }),
      generatingMs: Type.Optional(Type.Number({ minimum: 0 })),
    }),
    { maxItems: nodeRequestsMax },
  ),
);

/** Throws if the text is not such a list. */
export function readNodeRequests(text: string): readonly NodeRequest[] {
  const list: unknown = parseJson(text);
  if (!shape.Check(list)) throw new Error("the node's list of requests is not well-formed");
  return list;
}
