/** A program under test: it stands between the load client and an engine. */
export interface Program {
  readonly name: string;
  /** One line for the report: what it is, and how it is set. */
  readonly what: string;
  /** The scenarios for which it is a yardstick; absent: all. */
  readonly scenarios?: readonly string[];
  /** Connections that one of its processes holds open for each stream. Absent: two, to the client and to the engine. */
  readonly connectionsPerStream?: 1;
  /** Why it cannot be started, and how to install it; undefined: it can be started. */
  missing(): string | undefined;
  start(upstream: Upstream): Promise<RunningProgram>;
}

export interface Upstream {
  /** The port of the engine, on 127.0.0.1. */
  readonly port: number;
  /** Ports of further engines: agents take one in turn. */
  readonly otherPorts?: readonly number[];
  readonly model: string;
  /** Scratch space that is removed when the bench ends. */
  readonly directory: string;
}

export interface RunningProgram extends AsyncDisposable {
  readonly port: number;
  /** Ports where it serves as well: connections take them in turn. */
  readonly otherPorts?: readonly number[];
  /** `/v1/chat/completions` if absent. */
  readonly path?: string;
  /** Header lines that it asks of its clients, each with its line end. */
  readonly headers?: string;
  /** A file of API keys, one a line, for programs that ask for keys. */
  readonly keys?: string;
  /** Process ids by role. The processor time of each and of its descendants is counted. */
  readonly processes: Readonly<Record<string, number>>;
  /** The version that the report shows. */
  readonly version: string;
}
