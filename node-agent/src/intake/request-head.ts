/** Reads the headers with which the router describes a request. */
import type { IncomingHttpHeaders } from "node:http2";
import { assert } from "@weiche/shared/assert.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, isUuidv7, type ModelId, type RequestId, type SlotName } from "@weiche/shared/ids.ts";
import { nodeHeaders, nodePaths, type NodePath } from "@weiche/shared/node-protocol.ts";
import type { BillingGrant } from "@weiche/shared/usage-record.ts";

export interface RequestHead {
  readonly path: NodePath;
  readonly requestId: RequestId;
  readonly attempt: number;
  readonly model: ModelId;
  readonly slot: SlotName | undefined;
  readonly routerId: string;
  readonly remainingMs: number;
  /** Announced length of the body; 0 if there is none, which no router sends. */
  readonly bodyBytes: number;
  readonly billing: BillingGrant;
}

/** Throws an assertion if a header is missing or wrong: then the router has a bug, and nothing may be billed. */
export function readRequestHead(headers: IncomingHttpHeaders): RequestHead {
  const text = (name: string): string => {
    const value = headers[name];
    assert(typeof value === "string" && value !== "", `header ${name} is missing`);
    return value;
  };
  const count = (name: string): number => {
    assert(/^\d{1,12}$/.test(text(name)), `header ${name} is not a count`);
    return Number(text(name));
  };
  const path = Object.values(nodePaths).find((known) => known === headers[":path"]);
  assert(path !== undefined, "the path is unknown");
  const requestId = text(nodeHeaders.requestId);
  assert(isUuidv7(requestId), "the request id is no UUIDv7");
  const grant = text(nodeHeaders.grant);
  assert(/^[\w-]{1,64}$/.test(grant), "the grant is no base64url");
  const slot = headers[nodeHeaders.slot];
  return {
    path,
    requestId: asId<RequestId>(requestId),
    attempt: count(nodeHeaders.attempt),
    model: asId<ModelId>(text(nodeHeaders.model)),
    slot: typeof slot === "string" ? asId<SlotName>(slot) : undefined,
    routerId: text(nodeHeaders.router),
    remainingMs: count(nodeHeaders.remainingMs),
    bodyBytes: headers["content-length"] === undefined ? 0 : count("content-length"),
    billing: {
      accountId: asId(text(nodeHeaders.account)),
      userId: asId(text(nodeHeaders.user)),
      keyId: asId(text(nodeHeaders.key)),
      factor: millicredits(BigInt(count(nodeHeaders.factor))),
      tokensMax: count(nodeHeaders.tokensMax),
      grant,
    },
  };
}
