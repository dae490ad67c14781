/**
 * Notifies systemd (`Type=notify`) through the `systemd-notify` program, because Node.js has no Unix datagram sockets.
 * Does nothing without `NOTIFY_SOCKET`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { every, type Clock, type Timer } from "../time/clock.ts";

export interface ServiceManager extends Disposable {
  /** Text for `systemctl status`. */
  status(text: string): void;
  /** Sends `READY=1`, and feeds the watchdog from now on until disposed. */
  ready(text: string): void;
  /** Sends `STOPPING=1`. */
  stopping(text: string): void;
  /** Resolves when all messages were delivered or failed. */
  heard(): Promise<void>;
}

/** systemd-notify waits up to 5 s until systemd has read its message. */
const notifyMsMax = 10_000;

/**
 * Removes systemd's variables from `environment`, because with `NotifyAccess=all` a child with them could notify in our
 * name. `pid`: this process's pid. A watchdog for another pid is not fed.
 */
export function openServiceManager(environment: NodeJS.ProcessEnv, pid: number, clock: Clock): ServiceManager {
  const { NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID, PATH } = environment;
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]) delete environment[name];
  if (!NOTIFY_SOCKET) return { status() {}, ready() {}, stopping() {}, heard: async () => {}, [Symbol.dispose]() {} };

  const watchdogMs = [String(pid), undefined].includes(WATCHDOG_PID) ? Number(WATCHDOG_USEC) / 1_000 : NaN;
  let watchdog: Timer | undefined;
  let last = Promise.resolve();
  let saying = 0;
  let complained = false;

  /** Sends messages one after the other, in order. */
  function say(...lines: readonly string[]): void {
    saying++;
    last = last
      .then(() => notify(lines, { NOTIFY_SOCKET, PATH: PATH ?? "/usr/bin:/bin" }))
      .catch((error: Error) => {
        if (!complained) console.error(`systemd-notify: ${error.message}`);
        complained = true;
      })
      .finally(() => saying--);
  }

  /** Skips a ping while messages are pending, because more pings would only delay them on a busy host. */
  function feed(): void {
    if (saying === 0) say("WATCHDOG=1");
  }

  return {
    status: (text) => say(`STATUS=${text}`),
    ready(text) {
      say("READY=1", `STATUS=${text}`);
      // The event loop's timer does not fire if the loop hangs. Then systemd ends the process.
      if (watchdogMs > 0) watchdog ??= every(clock, watchdogMs / 2, feed);
    },
    stopping: (text) => say("STOPPING=1", `STATUS=${text}`),
    heard: () => last,
    [Symbol.dispose]: () => watchdog?.cancel(),
  };
}

async function notify(lines: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn("systemd-notify", lines, { env, stdio: "ignore", timeout: notifyMsMax, killSignal: "SIGKILL" });
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  if (code !== 0) throw new Error(`ended with ${signal ?? code}`);
}
