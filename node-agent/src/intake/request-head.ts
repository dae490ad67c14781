/** Reads the record in which the router describes a request. */
import { assert } from "@weiche/shared/assert.ts";
import { millicredits } from "@weiche/shared/credits.ts";
import { asId, isUuidv7, type ModelId, type RequestId, type SlotName } from "@weiche/shared/ids.ts";
import { nodePaths, type NodePath, type RequestRecord } from "@weiche/shared/node-protocol.ts";
import type { BillingGrant } from "@weiche/shared/usage-record.ts";

export interface RequestHead {
  readonly path: NodePath;
  readonly requestId: RequestId;
  readonly attempt: number;
  readonly model: ModelId;
  readonly slot: SlotName | undefined;
  readonly routerId: string;
  readonly remainingMs: number;
  /** The announced length of the body. */
  readonly bodyBytes: number;
  /** Whether the router reads DONE frames. */
  readonly readsDone: boolean;
  readonly billing: BillingGrant;
}

const countMax = 999_999_999_999;

/** Throws an assertion error if a field is missing or wrong. The router then has a bug, and nothing may be billed. */
export function readRequestHead(record: readonly unknown[]): RequestHead {
  const [
    path,
    requestId,
    attempt,
    model,
    slot,
    account,
    user,
    key,
    factor,
    tokensMax,
    grant,
    remainingMs,
    router,
    bytes,
    readsDone,
  ] = record as Partial<RequestRecord>;
  assert(Object.values<unknown>(nodePaths).includes(path), "the path is unknown");
  for (const text of [requestId, model, account, user, key, grant, router])
    assert(typeof text === "string" && text !== "", "a field of the request's record is missing");
  for (const count of [attempt, factor, tokensMax, remainingMs, bytes])
    assert(
      Number.isInteger(count) && count! >= 0 && count! <= countMax,
      "a field of the request's record is not a count",
    );
  assert(isUuidv7(requestId!), "the request id is not a UUIDv7");
  assert(/^[\w-]{1,64}$/.test(grant!), "the grant is not base64url");
  return {
    path: path!,
    requestId: asId<RequestId>(requestId!),
    attempt: attempt!,
    model: asId<ModelId>(model!),
    slot: typeof slot === "string" && slot !== "" ? asId<SlotName>(slot) : undefined,
    routerId: router!,
    remainingMs: remainingMs!,
    bodyBytes: bytes!,
    readsDone: readsDone === 1,
    billing: {
      accountId: asId(account!),
      userId: asId(user!),
      keyId: asId(key!),
      factor: millicredits(BigInt(factor!)),
      tokensMax: tokensMax!,
      grant: grant!,
    },
  };
}
