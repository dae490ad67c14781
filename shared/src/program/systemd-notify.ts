/**
 * Notifies systemd (`Type=notify`) through the `systemd-notify` program, since Node.js has no Unix datagram sockets.
 * Does nothing without `NOTIFY_SOCKET`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { every, type Clock, type Timer } from "../time/clock.ts";

export interface ServiceManager extends Disposable {
  /** Text for `systemctl status`. */
  status(text: string): void;
  /** Sends `READY=1`; from now on the watchdog is fed, until disposed. */
  ready(text: string): void;
  /** Sends `STOPPING=1`. */
  stopping(text: string): void;
  /** Resolves when all messages were delivered, or failed. */
  heard(): Promise<void>;
}

/** systemd-notify waits up to 5 s until its message is taken. */
const notifyMsMax = 10_000;

/**
 * Removes systemd's variables from `environment`: with `NotifyAccess=all` a child that inherits them could notify in
 * our name. `pid`: that of this process; a watchdog for another pid is not fed.
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

  /** Sends one message after the other, in order. */
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

  /** Skipped while messages are pending: on a busy host more pings would only delay the others. */
  function feed(): void {
    if (saying === 0) say("WATCHDOG=1");
  }

  return {
    status: (text) => say(`STATUS=${text}`),
    ready(text) {
      say("READY=1", `STATUS=${text}`);
      // A timer of the event loop: if the loop hangs, it does not fire, and systemd ends the process.
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
