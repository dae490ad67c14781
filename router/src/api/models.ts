/** `GET /v1/models` lists the models that the calling key may use. No account limit and no quota apply to it. */
import type { Catalogue } from "@weiche/shared/catalogue.ts";
import type { KeyCache } from "../callers/caller.ts";
import { authenticate } from "./authenticate.ts";
import type { Exchange } from "./exchange.ts";
import { modelsOf } from "./model-access.ts";

interface ModelsDeps {
  readonly keys: KeyCache;
  readonly catalogue: () => Catalogue;
}

export async function listModels(exchange: Exchange, { keys, catalogue }: ModelsDeps): Promise<void> {
  const { caller } = await authenticate(exchange, keys);
  const data = modelsOf(caller, catalogue()).map(({ id, factors }) => ({
    id,
    object: "model",
    created: Math.floor(factors[0]!.validFromMs / 1_000),
    owned_by: "weiche",
  }));
  const body = Buffer.from(JSON.stringify({ object: "list", data }));
  exchange.status = 200;
  exchange.bytesSent = body.length;
  exchange.sink.head(200, {
    "content-type": "application/json; charset=utf-8",
    "content-length": body.length,
    "x-request-id": exchange.id,
  });
  exchange.sink.end(body);
}
