/** A program under test, between the load client and an engine. */
export interface Program {
  readonly name: string;
  /** A line for the report: what the program is and how it is configured. */
  readonly what: string;
  /** The scenarios in which it is measured. Defaults to all. */
  readonly scenarios?: readonly string[];
  /** The connections per stream of one of its processes. Defaults to two, to the client and to the engine. */
  readonly connectionsPerStream?: 1;
  /** Returns why the program cannot start and how to install it, or undefined if it can. */
  missing(): string | undefined;
  start(upstream: Upstream): Promise<RunningProgram>;
}

export interface Upstream {
  /** The port of the engine, on 127.0.0.1. */
  readonly port: number;
  /** The ports of further engines. Agents use them in turn. */
  readonly otherPorts?: readonly number[];
  readonly model: string;
  /** A temporary directory that is removed when the bench ends. */
  readonly directory: string;
}

export interface RunningProgram extends AsyncDisposable {
  readonly port: number;
  /** Further ports of the program. Connections use them in turn. */
  readonly otherPorts?: readonly number[];
  /** Defaults to `/v1/chat/completions`. */
  readonly path?: string;
  /** Header lines that its clients must send, each with its line end. */
  readonly headers?: string;
  /** A file with one API key per line, for programs that require keys. */
  readonly keys?: string;
  /** Process ids by role. Measurements include the descendants of each. */
  readonly processes: Readonly<Record<string, number>>;
  /** The version that the report shows. */
  readonly version: string;
}
