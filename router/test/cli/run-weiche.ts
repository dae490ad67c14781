/** Runs `weiche` in this process, because starting the program takes half a second. */
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { runCli } from "../../src/surface/cli/cli.ts";

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

/** Runs a command without a terminal. */
export async function runWeiche(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  const [output, errors] = [new PassThrough(), new PassThrough()];
  const said = Promise.all([text(output), text(errors)]);
  const code = await runCli(args, env, { input: new PassThrough(), output, errors });
  for (const stream of [output, errors]) stream.end();
  const [out, error] = await said;
  return { code, out, error };
}
