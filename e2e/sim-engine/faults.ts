/**
 * Reads the faults of a simulated engine from texts `KIND[:AT][*TIMES]`. `AT` is `start`, `sleep`, `wake`, or the number of
 * tokens before the fault. It defaults to 1, and 0 is before the first byte. Without `TIMES` the fault always happens.
 */
const kinds = [
  // the process
  "crash",
  // the generating process dies: all requests end in an error, the front end refuses for one more second and exits with code 0
  "core-dies",
  "hang",
  "never-ready",
  "ignore-sigterm",
  // like vLLM in 3 of 8 runs: it stops listening, its streams stay open and silent, and it ends at the third SIGTERM
  "silent-at-sigterm",
  "stays-awake",
  // the whole answer
  "500",
  "503",
  "429",
  "overflow",
  "html",
  "empty",
  "wrong-length",
  // refuses with the first event of a stream instead of with a status
  "late-refusal",
  // the stream, at a token
  "cut",
  "cut-chunk",
  "reset",
  "invalid-utf8",
  "split",
  "huge-event",
  "no-newline",
  "not-json",
  "error-event",
  "abort",
  // how the stream ends
  "terminator-first",
  "no-terminator",
  "no-finish",
  "usage-only",
  "usage-missing",
  "usage-null",
  "usage-negative",
  "usage-string",
  "usage-fraction",
  "usage-infinite",
  "usage-unsafe",
  "usage-large",
  "usage-falling",
  "usage-twice",
  "usage-late",
] as const;

export type FaultKind = (typeof kinds)[number];
export interface Fault {
  readonly kind: FaultKind;
  readonly at: number | "start" | "sleep" | "wake";
  readonly times: number;
}

const wholeAnswer: ReadonlySet<FaultKind> = new Set(["500", "503", "429", "overflow", "html", "empty", "wrong-length"]);

export function parseFault(text: string): Fault {
  const match = /^([a-z0-9-]+)(?::(start|sleep|wake|\d+))?(?:\*(\d+))?$/.exec(text);
  const kind = kinds.find((known) => known === match?.[1]);
  if (!match || !kind) throw new Error(`no such fault: "${text}". There are: ${kinds.join(", ")}`);
  const at = match[2] ?? (wholeAnswer.has(kind) ? "0" : "1");
  return { kind, at: /^\d+$/.test(at) ? Number(at) : (at as Fault["at"]), times: Number(match[3] ?? Infinity) };
}

/** The faults of one engine. Each counts down when it happens. */
export class Faults {
  #left: { readonly fault: Fault; times: number }[] = [];

  constructor(texts: readonly string[] = []) {
    this.set(texts);
  }

  set(texts: readonly string[]): void {
    this.#left = texts.map(parseFault).map((fault) => ({ fault, times: fault.times }));
  }

  /** Takes one occurrence of a fault for this place. A request gets only faults before the end of its `length` tokens. */
  take(place: "start" | "sleep" | "wake" | "request", length = 0): Fault | undefined {
    const entry = this.#left.find(
      ({ fault, times }) => times > 0 && (place === "request" ? isOfRequest(fault, length) : fault.at === place),
    );
    if (!entry) return undefined;
    entry.times--;
    return entry.fault;
  }

  has(kind: FaultKind): boolean {
    return this.#left.some(({ fault, times }) => fault.kind === kind && times > 0);
  }
}

/** The faults that `has` checks. Requests do not take them. */
const ofEngine: readonly FaultKind[] = [
  ...(["never-ready", "ignore-sigterm", "silent-at-sigterm", "stays-awake", "late-refusal"] as const),
];

function isOfRequest({ kind, at }: Fault, length: number): boolean {
  return typeof at === "number" && at < length && !ofEngine.includes(kind);
}
