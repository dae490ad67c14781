/** `weiche-agent`: shows and controls the agent of this host. Exit codes: 0, 1 refused, 2 usage, 3 no agent. */
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { styleText } from "node:util";
import { Command, CommanderError } from "commander";
import { NobodyThere, askSocket } from "@weiche/shared/program/admin-socket.ts";
import { systemClock } from "@weiche/shared/time/clock.ts";
import { formatMistakes, locate, type Mistake } from "@weiche/shared/files/config-file.ts";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import { plainJson, plainText } from "@weiche/shared/program/plain-text.ts";
import { checkPrivate } from "@weiche/shared/files/private-file.ts";
import { version } from "@weiche/shared/program/version.ts";
import { checkAgentText } from "../config/config.ts";
import type { RawAgent } from "../config/config-schema.ts";
import { secretOf } from "../config/config-secrets.ts";
import { readFileSystems } from "../host/file-systems.ts";
import { createGpuReader } from "../host/gpu.ts";
import { MachineTelemetry } from "../host/machine-telemetry.ts";
import { hostMistakes, hostWarnings, type HostFacts } from "./host-warnings.ts";
import { machineWarnings, type MachineFacts } from "./machine-warnings.ts";
import type { AgentStatus } from "./status.ts";
import { formatStatus, type TextOptions } from "./status-text.ts";

const watchPeriodMs = 1_000;

class Refused extends Error {}

const program = new Command("weiche-agent")
  .description("Looks at and steers the node-agent of this host.")
  .version(version)
  .option("--json", "print JSON instead of tables")
  .option("--data-dir <dir>", "the agent's data directory", dataDirectory(process.env))
  .exitOverride()
  .configureHelp({ showGlobalOptions: true });

program
  .command("status")
  .description("slots, waiters, engines, memory of GPUs and host, links to routers, usage not yet committed")
  .option("--watch", "again every second, until Ctrl-C")
  .action(async ({ watch }: { watch?: boolean }) => {
    do {
      const status = (await ask("GET", "/status")) as AgentStatus;
      if (watch && process.stdout.isTTY) process.stdout.write("\u001b[H\u001b[2J");
      print(status, formatStatus(status, textOptions()));
      if (watch) await sleep(watchPeriodMs);
    } while (watch);
  });

program
  .command("prewarm")
  .argument("<model>")
  .description("activate a model as soon as nobody is in its way")
  .action(async (model: string) =>
    print(await ask("POST", "/prewarm", { model }), `${model} will be activated when its slot is free for it`),
  );

program
  .command("maintenance")
  .argument("<on|off>")
  .description("on: no new requests, running ones finish; the node is in maintenance if a router says so, too")
  .action(async (word: string) => {
    if (word !== "on" && word !== "off") throw new CommanderError(2, "usage", "say on or off");
    print(await ask("POST", "/maintenance", { on: word === "on" }), `maintenance is ${word}`);
  });

program
  .command("check-config")
  .argument("<file>")
  .description("judge an agent.yaml: every mistake with its line (exit code 1); what this host lacks are warnings")
  .action(async (file: string) => {
    const text = readText(file);
    const { value, mistakes: ofText } = checkAgentText(text);
    const host = await hostFacts();
    const mistakes = value ? [...locate(text, hostMistakes(value, host)), ...exposures(file, value)] : ofText;
    const baseDir = dirname(resolve(file));
    const warnings = value
      ? locate(text, [...hostWarnings(value, baseDir, host), ...machineWarnings(value, baseDir, host)])
      : [];
    const warned = warnings.map(({ line, message }) => ({ line, message: `warning: ${message}` }));
    const verdict = mistakes.length === 0 ? [`${file} is fine`] : [];
    const lines = [...formatMistakes(file, [...mistakes, ...warned]), ...verdict];
    print({ file, mistakes, warnings }, lines.map(plainText).join("\n"));
    if (mistakes.length > 0) process.exitCode = 1;
  });

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.code === "usage") console.error(`weiche-agent: ${plainText(error.message)}`);
    return error.exitCode === 0 ? 0 : 2;
  }
  if (error instanceof NobodyThere) {
    console.error(`weiche-agent: no agent there: ${plainText(error.message)} (is it running? another --data-dir?)`);
    return 3;
  }
  if (error instanceof Refused) {
    console.error(`weiche-agent: ${plainText(error.message)}`);
    return 1;
  }
  throw error;
}

async function ask(method: "GET" | "POST", path: string, body?: unknown): Promise<unknown> {
  const socket = join(resolve(program.opts<{ dataDir: string }>().dataDir), "agent", "admin.sock");
  const answer = await askSocket(socket, method, path, body);
  if (answer.status >= 300) throw new Refused((answer.body as { error: string }).error);
  return answer.body;
}

function print(value: unknown, text: string): void {
  console.log(program.opts<{ json?: boolean }>().json ? plainJson(JSON.stringify(value, null, 2)) : text);
}

/** Uses colours and the terminal's width only on a terminal: a pipe gets whole, plain lines. */
function textOptions(): TextOptions {
  const { stdout } = process;
  if (!stdout.isTTY) return {};
  return { width: stdout.columns, paint: (tone, text) => styleText(tone, text, { stream: stdout }) };
}

async function hostFacts(): Promise<HostFacts & MachineFacts> {
  const gpus = await createGpuReader({ clock: systemClock }).readGpus();
  const fileSystem = (path: string) => readFileSystems([{ path, holds: "models" }])[0];
  return { exists: existsSync, isEmpty, fileSystem, gpus, ...(gpus ? {} : { machine: await takeStock() }) };
}

/** False of what is no directory and of one that may not be read. */
function isEmpty(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

async function takeStock(): Promise<MachineFacts["machine"]> {
  const parts = { clock: systemClock, kept: [], path: process.env["PATH"], events: { machineThreadLost: () => {} } };
  await using telemetry = new MachineTelemetry(parts);
  await telemetry.takeStock().catch(() => {}); // what is not known is not warned of
  return telemetry.machine;
}

/** Finds files with secrets that others may read. Root checks for the agent, another user that may read by its group. */
function exposures(file: string, config: RawAgent): Mistake[] {
  const uid = process.geteuid?.() || "other";
  const { key } = config.tls ?? {};
  const keyFile = key === undefined ? undefined : resolve(dirname(file), key);
  const secrets: [file: string | undefined, what: string | undefined][] = [
    [file, secretOf(config)],
    [keyFile, "a private key"],
  ];
  return secrets.flatMap(([at, what]) => {
    if (at === undefined || what === undefined || !existsSync(at)) return [];
    try {
      checkPrivate(at, what, uid);
      return [];
    } catch (error) {
      return [{ line: 0, message: (error as Error).message }];
    }
  });
}

function readText(file: string): string {
  try {
    if (statSync(file).isFile()) return readFileSync(file, "utf8");
  } catch (error) {
    throw new Refused(`cannot read ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
  throw new Refused(`${file} is not a file`);
}
