/** `weiche-agent`: shows and controls the agent of this host. Exit codes: 0, 1 refused, 2 usage, 3 no agent, 130 stopped. */
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { styleText } from "node:util";
import { Argument, Command, CommanderError } from "commander";
import { NobodyThere, askSocket } from "@weiche/shared/program/admin-socket.ts";
import { verdictLines } from "@weiche/shared/files/config-file.ts";
import { readForStart, StartError } from "@weiche/shared/files/start-error.ts";
import { dataDirectory } from "@weiche/shared/files/data-directory.ts";
import { logLevels, logLevelSecondsMax, logLevelText, type LogLevelState } from "@weiche/shared/program/log-level.ts";
import { readDurationMs } from "@weiche/shared/program/duration.ts";
import { plainJson, plainText } from "@weiche/shared/program/plain-text.ts";
import { version } from "@weiche/shared/program/version.ts";
import { judgeAgentFile } from "./config-verdict.ts";
import { addProfileCommand } from "./profile-command.ts";
import type { AgentStatus } from "./status.ts";
import { formatStatus, type TextOptions } from "./status-text.ts";

const watchPeriodMs = 1_000;

class Refused extends Error {}
class Stopped extends Error {}

const program = new Command("weiche-agent")
  .description("Inspect and control the node-agent of this host.")
  .version(version)
  .option("--json", "print JSON instead of tables")
  .option("--data-dir <dir>", "the agent's data directory", dataDirectory(process.env))
  .exitOverride()
  .configureHelp({ showGlobalOptions: true });

program
  .command("status")
  .description("Show slots, waiters, engines, memory, links to routers and uncommitted usage.")
  .option("--watch", "refresh every second until Ctrl-C")
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
  .description("Activate a model as soon as no request for another model is in its way.")
  .action(async (model: string) =>
    print(await ask("POST", "/prewarm", { model }), `${model} will be activated when its slot is free`),
  );

program
  .command("maintenance")
  .argument("<on|off>")
  .description("Turn this node's maintenance on or off. `weiche node maintenance` on a router is separate.")
  .action(async (word: string) => {
    if (word !== "on" && word !== "off") throw new CommanderError(2, "usage", "the argument must be on or off");
    print(await ask("POST", "/maintenance", { on: word === "on" }), `maintenance is ${word}`);
  });

program
  .command("log")
  .description("Show the log level, or set it for a limited time.")
  .addArgument(new Argument("[level]").choices(logLevels))
  .option("--for <duration>", "how long the level applies, such as 5m, at most 24h", "10m")
  .action(async (level: string | undefined, { for: text }: { for: string }) => {
    const ms = readDurationMs(text);
    if (ms === undefined || ms > logLevelSecondsMax * 1_000)
      throw new CommanderError(2, "usage", "--for: a duration looks like 30s, 10m or 1h, and is at most 24h");
    const seconds = Math.max(1, Math.round(ms / 1_000));
    const state = await (level === undefined ? ask("GET", "/log") : ask("POST", "/log", { level, seconds }));
    print(state, logLevelText(state as LogLevelState));
  });

program
  .command("check-config")
  .argument("<file>")
  .description("Check an agent.yaml. Exit with 1 on mistakes. Missing parts of this host are warnings.")
  .action(async (file: string) => {
    const verdict = await judgeAgentFile(file, readForStart(file).toString());
    print(verdict, verdictLines(verdict).map(plainText).join("\n"));
    if (verdict.mistakes.length > 0) process.exitCode = 1;
  });

addProfileCommand(program, {
  ...{ ask, print },
  refused: (message) => new Refused(message),
  stopped: (message) => new Stopped(message),
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
    console.error(
      `weiche-agent: no agent found: ${plainText(error.message)} (is the agent running, and is --data-dir right?)`,
    );
    return 3;
  }
  if (error instanceof Refused || error instanceof StartError) {
    console.error(`weiche-agent: ${plainText(error.message)}`);
    return 1;
  }
  if (error instanceof Stopped) {
    console.error(`weiche-agent: ${error.message}`);
    return 130; // as a shell reports a program that Ctrl-C ended
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

/** Uses colours and the terminal's width only on a terminal. A pipe gets uncut lines without colours. */
function textOptions(): TextOptions {
  const { stdout } = process;
  if (!stdout.isTTY) return {};
  return { width: stdout.columns, paint: (tone, text) => styleText(tone, text, { stream: stdout }) };
}
