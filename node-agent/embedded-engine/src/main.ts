/**
 * The embedded engine: a small OpenAI-style server on llama.cpp (node-llama-cpp), in its own process like every other
 * engine. `node main.ts --model FILE.gguf --port N`. The options are in options.ts.
 */
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { unlink } from "node:fs/promises";
import { connect, type AddressInfo } from "node:net";
import { availableParallelism } from "node:os";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { StartError } from "@weiche/shared/files/start-error.ts";
import { formatListen } from "@weiche/shared/http/listen.ts";
import { readOptions, type Options } from "./options.ts";
import { EngineServer } from "./server.ts";

/** The time after which the process ends even if an answer has not. */
const stopMsMax = 2_000;

const server = new EngineServer({
  clock: systemClock,
  randomSeed: () => randomInt(2 ** 32),
  randomId: () => randomUUID().replaceAll("-", "").slice(0, 24),
});

try {
  await start(readOptions(process.argv.slice(2), availableParallelism()));
} catch (error) {
  if (!(error instanceof StartError)) throw error;
  process.stderr.write(`embedded engine: ${error.message}\n`);
  process.exit(1);
}

async function start(options: Options): Promise<void> {
  await listen(options.listen);
  // Not `once`, because a library of node-llama-cpp would then be the only listener and end the process with the
  // signal.
  process.on("SIGTERM", () => void stop());
  process.on("SIGINT", () => void stop());
  say(`listening on ${address(options.listen)}`);
  // Loading the library takes longer than loading a small model, so the port opens first.
  const [{ loadEngine }, { handlers }] = await Promise.all([import("./model.ts"), import("./handlers.ts")]);
  const engine = await loadEngine(options, (line) => process.stderr.write(`llama.cpp: ${line}\n`));
  server.open(engine, handlers);
  const { alias, contextTokens } = engine;
  say(`${alias} is ready: ${options.parallel} × ${contextTokens} tokens, ${options.threads} threads`);
}

async function listen(where: Options["listen"]): Promise<void> {
  if ("path" in where) await removeDeadSocket(where.path);
  server.http.listen(where);
  try {
    await once(server.http, "listening");
  } catch (error) {
    throw new StartError(`cannot listen: ${(error as Error).message}`);
  }
}

/** Removes the socket of a killed engine if nothing answers there. */
async function removeDeadSocket(path: string): Promise<void> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ECONNREFUSED") await unlink(path);
  } finally {
    socket.destroy();
  }
}

function address(where: Options["listen"]): string {
  if ("path" in where) return where.path;
  const { port } = server.http.address() as AddressInfo;
  return `http://${formatListen({ host: where.host, port })}`;
}

function say(line: string): void {
  process.stdout.write(`embedded engine: ${line}\n`);
}

/** Waits for llama.cpp to finish its computation, because an interrupted one would crash and look like a failure. */
async function stop(): Promise<void> {
  systemClock.after(stopMsMax, () => process.exit(0));
  await server.stop();
  process.exit(0);
}
