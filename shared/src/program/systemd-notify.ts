/**
 * What a program under systemd (`Type=notify`) says to its service manager, through the `systemd-notify` program: Node.js
 * has no datagram sockets for Unix addresses. Without `NOTIFY_SOCKET` nothing is said and nothing is started.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { every, type Clock, type Timer } from "../time/clock.ts";

export interface ServiceManager extends Disposable {
  /** What `systemctl status` shows. */
  status(text: string): void;
  /** `READY=1`; from now on the watchdog is fed, until disposed. */
  ready(text: string): void;
  /** `STOPPING=1` */
  stopping(text: string): void;
  /** Resolves when all of it was taken, or could not be. */
  heard(): Promise<void>;
}

/** systemd-notify waits until its message was taken, for 5 s at most. */
const notifyMsMax = 10_000;

/**
 * Takes its variables out of `environment`: with `NotifyAccess=all` a child that inherited them could speak for us.
 * `pid` is this process's own; a watchdog for another one is not ours to feed.
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

  /** One after the other, so that they arrive in order. */
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

  /** On a host so busy that the food of before has not arrived, more of it would only stand in the way of what is news. */
  function feed(): void {
    if (saying === 0) say("WATCHDOG=1");
  }

  return {
    status: (text) => say(`STATUS=${text}`),
    ready(text) {
      say("READY=1", `STATUS=${text}`);
      // A timer of the event loop: while the loop hangs it does not fire, and systemd ends the process.
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
