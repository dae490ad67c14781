/** Asks an engine for answers that only measure its speed, as many at once as wanted. */
import { createHash } from "node:crypto";
import { asId, type AccountId, type ModelId, type SlotName } from "@weiche/shared/ids.ts";
import { isObject, parseJson } from "@weiche/shared/json.ts";
import { nodePaths } from "@weiche/shared/node-protocol.ts";
import { SseParser } from "@weiche/shared/http/sse.ts";
import type { MonotonicClock } from "@weiche/shared/time/clock.ts";
import type { EndSignal } from "@weiche/shared/time/end-signal.ts";
import type { EngineConnections } from "../answer/engine-connections.ts";
import type { Dialect } from "../engines/dialects/dialect.ts";
import type { DialectName } from "../engines/engine.ts";
import type { Admission, Admissions } from "../slots/admission.ts";
import { isMeasured, type TimedAnswer } from "./step-times.ts";

export interface AskingOptions {
  readonly slots: Admissions;
  readonly connections: EngineConnections;
  readonly dialects: Readonly<Record<DialectName, Dialect>>;
  readonly clock: MonotonicClock;
  readonly signal: EndSignal;
}

interface Wanted {
  readonly model: ModelId;
  readonly slot: SlotName;
  readonly count: number;
  readonly promptWords: number;
  /** Answers end earlier if their steps are measured. */
  readonly tokensMax: number;
  /** The tokens of each answer while all answers run. */
  readonly stepsWanted: number;
}

/** Names the requests in the agent's own counts. No router and no account has it. */
const profiler = "profile";

export function admitted({ slots, signal }: AskingOptions, model: ModelId, slot: SlotName): Promise<Admission> {
  return slots.admit({
    ...{ model, slot, answers: 1, signal },
    account: asId<AccountId>(profiler),
    routerId: profiler,
  });
}

/**
 * All answers run at the same time: the first is asked for when every one has its place. Returns none if the slot does
 * not give so many places at once, because it keeps some for other accounts.
 */
export async function answersAtOnce(options: AskingOptions, wanted: Wanted): Promise<readonly TimedAnswer[]> {
  const asked = await Promise.allSettled(
    Array.from({ length: wanted.count }, () => admitted(options, wanted.model, wanted.slot)),
  );
  const admissions = asked.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  try {
    const refused = asked.find((each) => each.status === "rejected");
    if (refused && (admissions.length === 0 || options.signal.aborted)) throw refused.reason;
    if (refused) return [];
    const answers = admissions.map((): Answer => ({ askedMs: 0, tokensMs: [] }));
    await Promise.all(admissions.map((admission, index) => receive(options, admission, wanted, answers, index)));
    return answers;
  } finally {
    for (const admission of admissions) admission.release();
  }
}

interface Answer extends TimedAnswer {
  askedMs: number;
  readonly tokensMs: number[];
  promptTokens?: number;
  completionTokens?: number;
}

let calls = 0;

/** Ends at the end of the answer, or when enough tokens of all answers have come. */
async function receive(
  { connections, dialects, clock, signal }: AskingOptions,
  { engine, endpoint }: Admission,
  { model, promptWords, tokensMax, stepsWanted }: Wanted,
  answers: readonly Answer[],
  index: number,
): Promise<void> {
  const dialect = dialects[engine.dialect];
  const answer = answers[index]!;
  const requestId = `${profiler}-${++calls}`;
  const prompt = promptOf(requestId, promptWords);
  const ask = (sampling: object) => {
    const body = dialect.completionBody({
      ...{ kind: "completion", model, prompt, maxTokens: tokensMax, sampling: { temperature: 1, ...sampling } },
      ...{ choices: 1, stream: true, includeUsage: true, cacheSalt: requestId },
    });
    answer.askedMs = clock.monotonicMs();
    return connections.open({
      ...{ endpoint, path: nodePaths.completions, body: Buffer.from(JSON.stringify(body)), requestId, signal },
      ...{ keep: dialect.keepsConnections, silentMsMax: engine.silentMsMax },
      showsLife: dialect.showsLife !== undefined,
    });
  };
  // An answer that ends early measures nothing.
  let call = await ask({ ignore_eos: true });
  if (call.status === 400 && engine.dialect === "openai") {
    // Some of these engines refuse fields that they do not know.
    call.close();
    call = await ask({});
  }
  try {
    if (call.status !== 200) throw new Error(`the engine answered with status ${call.status}`);
    const parser = new SseParser();
    for (let bytes = await call.read(); bytes; bytes = await call.read()) {
      call.showLife();
      for (const event of parser.push(bytes)) if (event.kind === "data") take(answer, dialect, event.data, clock);
      if (isMeasured(answers, stepsWanted)) return;
    }
    call.finish();
  } finally {
    call.close();
  }
}

function take(answer: Answer, dialect: Dialect, data: string, clock: MonotonicClock): void {
  const event: unknown = parseJson(data);
  if (!isObject(event)) return;
  const { choices, usage, error } = dialect.readChunk(event);
  if (error !== undefined) throw new Error("the engine reported an error in its answer");
  if (choices.some(({ content, reasoning }) => content || reasoning)) answer.tokensMs.push(clock.monotonicMs());
  if (typeof usage?.prompt === "number") answer.promptTokens = usage.prompt;
  if (typeof usage?.completion === "number") answer.completionTokens = usage.completion;
}

/** Words that differ from the first one on, so that no engine finds a prompt in its prefix cache. */
function promptOf(requestId: string, words: number): string {
  let text = "";
  for (let count = 0; count < words; count++)
    text += `${createHash("sha256").update(`${requestId} ${count}`).digest("hex").slice(0, 4)} `;
  return text;
}
