/** Reads a node's list of the requests that it serves. */
import { Type } from "typebox";
import { Compile } from "typebox/compile";
import { nodeRequestsMax, type NodeRequest } from "@weiche/shared/node-protocol.ts";
import { scanJson } from "@weiche/shared/http/json-guard.ts";
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
      position: Type.Optional(Type.Integer({ minimum: 1 })),
      estimateMs: Type.Optional(Type.Number({ minimum: 0 })),
    }),
    { maxItems: nodeRequestsMax },
  ),
);

/** Values of the largest list: twice the fields of a request, to leave room for later versions. */
const valuesMax = nodeRequestsMax * 16;

/** Throws if the text is not such a list. Does not parse a text with more values than such a list can have. */
export function readNodeRequests(text: string): readonly NodeRequest[] {
  const scan = scanJson(Buffer.from(text), valuesMax);
  const list: unknown = "problem" in scan ? undefined : parseJson(text);
  if (!shape.Check(list)) throw new Error("the node's list of requests is not well-formed");
  return list;
}
