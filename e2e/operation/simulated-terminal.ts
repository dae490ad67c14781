/** Runs `weiche` in this process on a simulated terminal, or with pipes. */
import { PassThrough } from "node:stream";
import { runCli } from "@weiche/router/src/surface/cli/cli.ts";
import { join } from "node:path";
import type { Cluster } from "../cluster/cluster.ts";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** A running command with its output so far. */
export class RunningCommand {
  output = "";
  errors = "";
  /** The exit code. */
  readonly ended: Promise<number>;
  readonly #input: PassThrough;

  /** Without `size`, the command gets pipes. */
  constructor(cluster: Cluster, args: readonly string[], size?: TerminalSize) {
    const stream = () => Object.assign(new PassThrough(), size && { isTTY: true, ...size });
    const [input, output, errors] = [stream(), stream(), stream()];
    output.on("data", (text: Buffer) => (this.output += text.toString()));
    errors.on("data", (text: Buffer) => (this.errors += text.toString()));
    this.#input = input;
    const env = { WEICHE_DATA_DIR: join(cluster.directory, "data") };
    this.ended = runCli(args, env, { input, output, errors });
  }

  type(text: string): void {
    this.#input.write(text);
  }

  /** The picture that was drawn last. */
  get picture(): string {
    return this.output.split("\u001b[H").at(-1)!.replaceAll("\u001b[K", "").replace("\u001b[J", "");
  }
}
