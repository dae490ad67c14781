/** Runs a simulated engine for each dialect in this process, and returns the configuration for an agent. */
import {
  startSimEngine,
  type SimDialectName,
  type SimEngine,
  type SimEngineOptions,
} from "../sim-engine/sim-engine.ts";

export const simDialects = ["vllm", "llama-server", "openai"] as const satisfies readonly SimDialectName[];

/** The model of each engine is `<prefix>-<dialect>`. */
export class SimTrio implements AsyncDisposable {
  readonly prefix: string;
  readonly engines: ReadonlyMap<SimDialectName, SimEngine>;

  private constructor(prefix: string, engines: ReadonlyMap<SimDialectName, SimEngine>) {
    this.prefix = prefix;
    this.engines = engines;
  }

  static async start(prefix: string, options: Omit<SimEngineOptions, "model" | "dialect"> = {}): Promise<SimTrio> {
    const started = await Promise.all(
      simDialects.map((dialect) => startSimEngine({ ...options, model: `${prefix}-${dialect}`, dialect })),
    );
    return new SimTrio(prefix, new Map(simDialects.map((dialect, at) => [dialect, started[at]!])));
  }

  of(dialect: SimDialectName): SimEngine {
    return this.engines.get(dialect)!;
  }

  get models(): string[] {
    return simDialects.map((dialect) => `${this.prefix}-${dialect}`);
  }

  /** The slots of an `agent.yaml`, one for each engine. The agent neither starts nor stops these engines. */
  slots(): object[] {
    return simDialects.map((dialect) => ({
      name: `${this.prefix}-${dialect}`,
      engines: [
        {
          ...{ model: `${this.prefix}-${dialect}`, dialect, maxConcurrent: 8 },
          ...{ launcher: "external", url: this.of(dialect).origin },
        },
      ],
    }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.engines.values()].map((engine) => engine[Symbol.asyncDispose]()));
  }
}
