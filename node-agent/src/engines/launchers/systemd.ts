/**
 * Engines as instances `<slot>-<model>` of a systemd template unit, which the operator writes. An instance reads
 * `WEICHE_PORT`, `WEICHE_MODEL` and the configured `env` from `units/<slot>-<model>.env` in the agent's state
 * directory. It needs `Restart=no`, because the slot decides when an engine runs.
 */
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { assert } from "@weiche/shared/assert.ts";
import { every, type Clock } from "@weiche/shared/time/clock.ts";
import { EngineStartError, type EngineHandle, type Launcher } from "../engine.ts";
import { engineName } from "../engine-name.ts";
import { agentEnvironment, commandHash, endpointOf } from "./engine-command.ts";
import type { LoopbackPorts } from "./loopback-ports.ts";
import type { ProcessTable } from "./process-table.ts";

/** Runs a program and resolves with its stdout. Rejects if it fails or takes too long. */
export type RunCommand = (program: string, args: readonly string[]) => Promise<string>;

/** Exceeds the `TimeoutStopSec` of weiche-engine@.service, 60 s, because `systemctl stop` can take that long. */
const commandMsMax = 120_000;

export const runCommand: RunCommand = async (program, args) => {
  const { stdout } = await promisify(execFile)(program, args, { timeout: commandMsMax, killSignal: "SIGKILL" });
  return stdout;
};

interface SystemdLauncherOptions {
  readonly stateDir: string;
  readonly clock: Clock;
  readonly ports: LoopbackPorts;
  readonly processes: ProcessTable;
  readonly runCommand: RunCommand;
}

const pollMs = 1_000;
/** llama-server needs a second SIGTERM, and systemd sends only one. */
const secondSignalAfterMs = 2_000;
const killAfterMs = 12_000;

export function createSystemdLauncher(options: SystemdLauncherOptions): Launcher {
  const { clock, ports, processes, stateDir } = options;
  const systemctl = (...args: string[]) => options.runCommand("systemctl", ["--no-ask-password", ...args]);
  const startedMs = new Map<string, number>();
  const show = async (unit: string) => parseShow(await systemctl("show", "-p", shown.join(","), unit));

  async function writeEnvironment(name: string, variables: Readonly<Record<string, string>>): Promise<void> {
    const directory = join(stateDir, "units");
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const lines = Object.entries(variables).map(([variable, value]) => `${variable}=${quote(variable, value)}\n`);
    await writeFile(join(directory, `${name}.env`), lines.join(""), { mode: 0o600 });
  }

  /** Returns lines since this agent last started the unit, because output of an earlier run may contain prompts. */
  async function lastLines(unit: string): Promise<readonly string[]> {
    const sinceMs = startedMs.get(unit);
    if (sinceMs === undefined) return [];
    const since = `--since=@${(sinceMs / 1000).toFixed(3)}`;
    const args = ["--unit", unit, since, "--lines", "50", "--output", "cat", "--no-pager"];
    const text = await options.runCommand("journalctl", args).catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  async function stopUnit(unit: string): Promise<void> {
    if (["inactive", "failed"].includes((await show(unit)).ActiveState)) return;
    const kill = (signal: string) => void systemctl("kill", `--signal=${signal}`, unit).catch(() => {});
    const timers = [
      clock.after(secondSignalAfterMs, () => kill("SIGTERM")),
      clock.after(killAfterMs, () => kill("SIGKILL")),
    ];
    try {
      await systemctl("stop", unit);
    } finally {
      timers.forEach((timer) => timer.cancel());
    }
  }

  return {
    async start(spec, slot) {
      assert(spec.launcher.kind === "systemd", "the systemd launcher starts units");
      const name = engineName(slot, spec.model);
      const unit = instanceOf(spec.launcher.unit, name);
      // An instance left by an earlier agent would keep running with its old port.
      await stopUnit(unit);
      const port = await ports.take();
      startedMs.set(unit, clock.now());
      try {
        const variables = { WEICHE_PORT: String(port), WEICHE_MODEL: spec.model };
        await writeEnvironment(name, { ...variables, ...agentEnvironment, ...spec.launcher.env });
        await systemctl("start", unit);
        const now = await show(unit);
        if (!isRunning(now)) throw new Error(`unit ${unit} is ${now.ActiveState} right after its start`);
        const [pid, startTicks] = [Number(now.MainPID), Number(now.ExecMainStartTimestampMonotonic)];
        const endpoint = endpointOf({ port });
        return {
          ...{ slot, model: spec.model, launcher: "systemd", unit, endpoint, pid, asleep: false },
          ...{ startTicks, commandHash: commandHash(spec.launcher) },
        };
      } catch (error) {
        ports.release(port);
        throw new EngineStartError((error as Error).message, await lastLines(unit), { cause: error });
      }
    },
    async recover(handle, spec) {
      if (handle.unit === undefined || handle.commandHash !== commandHash(spec.launcher)) return false;
      return isSame(await show(handle.unit), handle);
    },
    async stop(handle) {
      if (handle.unit !== undefined) await stopUnit(handle.unit);
      ports.release(Number(new URL(handle.endpoint.origin).port));
    },
    onExit(handle, callback) {
      const unit = handle.unit!;
      let watching = true;
      const poll = every(clock, pollMs, async () => {
        const now = await show(unit).catch(() => undefined);
        if (now === undefined || isSame(now, handle)) return;
        poll.cancel();
        const reason = `unit ${now.ActiveState}, result ${now.Result}, status ${now.ExecMainStatus}`;
        const report = { reason, output: `journalctl --unit ${unit}`, lastLines: await lastLines(unit) };
        if (watching) callback(report);
      });
      return () => {
        watching = false;
        poll.cancel();
      };
    },
    lastLines: (handle) => lastLines(handle.unit!),
    processes: (handle) => processes.group(handle.pid!),
  };
}

const shown = ["MainPID", "ActiveState", "ExecMainStartTimestampMonotonic", "Result", "ExecMainStatus"] as const;
type UnitState = Readonly<Record<(typeof shown)[number], string>>;

function parseShow(text: string): UnitState {
  const pairs = text.split("\n").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
  return Object.fromEntries(pairs) as UnitState;
}

function isRunning(state: UnitState): boolean {
  return ["active", "activating", "reloading"].includes(state.ActiveState) && Number(state.MainPID) > 1;
}

function isSame(state: UnitState, handle: EngineHandle): boolean {
  return (
    isRunning(state) &&
    Number(state.MainPID) === handle.pid &&
    Number(state.ExecMainStartTimestampMonotonic) === handle.startTicks
  );
}

/** `weiche-engine@.service` and a name give `weiche-engine@name.service`. */
function instanceOf(template: string, name: string): string {
  const [, prefix, suffix] = /^([^@/]+@)(\.service)?$/.exec(template) ?? [];
  if (prefix === undefined) throw new Error(`unit ${template} is not a template such as weiche-engine@.service`);
  return `${prefix}${name}${suffix ?? ".service"}`;
}

/** Quotes a value for `EnvironmentFile=`, see systemd.exec(5). */
function quote(variable: string, value: string): string {
  if (/[\n\0]/.test(value)) throw new Error(`its variable ${variable} has more than one line`);
  return `"${value.replace(/[\\"$`]/g, "\\$&")}"`;
}
