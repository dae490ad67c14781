/** An error answer of a node. Only its checked fields reach the client. */
import { Type } from "typebox";
import { Compile } from "typebox/compile";
import type { ErrorBody } from "@weiche/shared/errors.ts";
import { CollectedBytes } from "@weiche/shared/http/collected-bytes.ts";
import { parseJson } from "@weiche/shared/json.ts";
import type { NodeFault } from "@weiche/shared/node-protocol.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import { NodeLost, type UpstreamResponse } from "../nodes/upstream.ts";

export class NodeRefusal extends Error {
  readonly status: number;
  readonly body: ErrorBody;
  readonly headers: Record<string, string>;
  /** The node's engine refused a request that follows all rules of the service. */
  readonly isOfEngine: boolean;
  /** The request did not reach the engine. The same node holds it until its engine is restarted. */
  readonly isEngineAway: boolean;

  constructor(status: number, body: ErrorBody, headers: Record<string, string>, fault?: NodeFault) {
    super(`a node answered ${status}`);
    this.status = status;
    this.body = body;
    this.headers = headers;
    this.isOfEngine = fault === "engine-refused";
    this.isEngineAway = fault === "engine-away";
  }
}

const bodyBytesMax = 64 << 10;
/** The statuses with which agents refuse. Others belong to accounts, keys and limits, which only the router checks. */
const nodeStatuses: ReadonlySet<number> = new Set([400, 500, 503, 504]);
const shape = Compile(
  Type.Object({
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()]),
      code: Type.String(),
    }),
  }),
);

/** Reads an answer that is not 200. Throws `NodeLost` if it has no error body, or a status that agents do not send. */
export async function readNodeRefusal(answer: UpstreamResponse, signal: EndSignal): Promise<NodeRefusal> {
  const { status, retryAfterSeconds, body } = answer;
  const parsed = parseJson(await collect(answer, signal));
  body.cancel();
  if (!shape.Check(parsed)) throw new NodeLost(`answered ${status} without an error body`);
  if (!nodeStatuses.has(status)) throw new NodeLost(`answered ${status}, which agents do not send`);
  const { message, type, param, code } = parsed.error;
  return new NodeRefusal(
    status,
    { error: { message, type, param, code } },
    retryAfterSeconds > 0 && retryAfterSeconds < 1e6 ? { "retry-after": String(retryAfterSeconds) } : {},
    body.nodeFault,
  );
}

function collect({ body }: UpstreamResponse, signal: EndSignal): Promise<string> {
  const bytes = new CollectedBytes();
  return new Promise((resolve) => {
    const end = () => resolve(bytes.toString());
    signal.addEventListener("abort", end, { once: true });
    body.readInto({
      take(chunk) {
        if (bytes.length + chunk.length <= bodyBytesMax) return bytes.push(chunk);
        resolve("");
        body.cancel();
      },
      end,
    });
  });
}
