/** What every program under test is for the bench: something between the load client and an engine. */
export interface Program {
  readonly name: string;
  /** One line for the report: what it is, and how it is set. */
  readonly what: string;
  /** The scenarios for which it is a yardstick; absent: all. */
  readonly scenarios?: readonly string[];
  /** What one of its processes holds open for each stream: two if absent, to the client and to the engine. */
  readonly connectionsPerStream?: 1;
  /** Undefined: it can be started. Else why not, and how to install it. */
  missing(): string | undefined;
  start(upstream: Upstream): Promise<RunningProgram>;
}

export interface Upstream {
  /** Of the engine, on 127.0.0.1. */
  readonly port: number;
  readonly model: string;
  /** Scratch space that is removed when the bench ends. */
  readonly directory: string;
}

export interface RunningProgram extends AsyncDisposable {
  readonly port: number;
  /** `/v1/chat/completions` if absent. */
  readonly path?: string;
  /** Header lines that it asks of its clients, each with its line end. */
  readonly headers?: string;
  /** A file of API keys, one a line, for those who ask for keys. */
  readonly keys?: string;
  /** Process ids by role; what these have started belongs to them. Their processor time is counted, all of it. */
  readonly processes: Readonly<Record<string, number>>;
  /** What it runs as: versions, for the report. */
  readonly version: string;
}
