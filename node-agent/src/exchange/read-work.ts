/**
 * Converts the bytes of a body into work for an engine. Another thread parses bodies that are long or have many values
 * and writes them for their engine. The main thread keeps only their bytes, however long they wait.
 */
import { asBuffer, ByteThread, ownBytes } from "@weiche/shared/http/byte-thread.ts";
import { ApiError } from "@weiche/shared/errors.ts";
import type { AccountId } from "@weiche/shared/ids.ts";
import { scanLight } from "@weiche/shared/http/json-guard.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { BodyJob, BodyReply } from "./body-thread.ts";
import { Embedding } from "../answer/embeddings/embedding.ts";
import { PromptEstimates } from "../answer/prompt-estimates.ts";
import type { EngineAccess, EngineWork } from "../answer/engine-work.ts";
import { Generation, type GenerationScope } from "../answer/generation.ts";
import { factsOf, readRequest, say, type BodyScope } from "../intake/read-request.ts";
import type { RequestHead } from "../intake/request-head.ts";

/** Bodies up to this size do not count towards the limit of large bodies. */
export const smallBytesMax = 1 << 20;

export class WorkReader implements AsyncDisposable {
  readonly #estimates = new PromptEstimates();
  readonly #thread = new ByteThread<BodyJob, BodyReply>(new URL("./body-thread.ts", import.meta.url));

  /** Rejects with an `ApiError` if `readRequest` refuses the body, or with the signal's reason. */
  async read(
    head: RequestHead,
    { rules, dialects }: Omit<BodyScope, "path">,
    bytes: Buffer,
    nowMs: number,
    signal: EndSignal,
  ): Promise<EngineWork> {
    const { path, requestId, billing } = head;
    const scope = { path, rules, dialects };
    const { accountId, tokensMax } = billing;
    const about = { requestId, accountId, rules, tokensMax, nowMs, estimates: this.#estimates };
    const scan = scanLight(bytes);
    if (!scan) return await this.#readHeavy({ scope, bytes: ownBytes(bytes) }, about, signal);
    const request = readRequest(scope, bytes, scan);
    if (request.kind === "embedding") return new Embedding(request, about);
    const sayTo = (engine: EngineAccess) => say(request, engine);
    return new Generation({ facts: factsOf(request), say: sayTo }, about);
  }

  async #readHeavy(job: BodyJob, about: GenerationScope, signal: EndSignal): Promise<EngineWork> {
    const { accountId } = about;
    const { bytes, read } = await this.#run(job, accountId, signal);
    if (read!.kind === "embedding") return new Embedding(read!, about);
    const say = async ({ dialectName: dialect, cacheSalt }: EngineAccess) => {
      const scope = { ...job.scope, dialects: [dialect] }; // Tools may have a different form for this engine.
      return asBuffer((await this.#run({ scope, bytes, dialect, cacheSalt }, accountId, signal)).bytes);
    };
    return new Generation({ facts: read!, say }, about);
  }

  async #run(job: BodyJob, accountId: AccountId, signal: EndSignal): Promise<BodyReply> {
    const reply = await this.#thread.run(job, signal, accountId);
    signal.throwIfAborted();
    if (!reply.refused) return reply;
    const { kind, message, param } = reply.refused;
    throw new ApiError(kind, message, { param });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#thread[Symbol.asyncDispose]();
  }
}
