/** Runs a program: prints one clear line if it cannot start, and stops it in order at SIGTERM and Ctrl-C. */
import { systemClock } from "../time/clock.ts";
import { isJournal } from "./journal.ts";
import { StartError } from "../files/start-error.ts";
import { plainText } from "./plain-text.ts";
import { stopWish } from "./stop-wish.ts";
import { openServiceManager, type ServiceManager } from "./systemd-notify.ts";
import { version } from "./version.ts";
import { writeFileSync } from "node:fs";

/**
 * Runs `main`. Its argument `stop` resolves at the first SIGTERM or SIGINT, or when a parent that spawned us with a
 * channel has ended. Then `main` must end. A second signal ends the process at once. The exit code is 1 if `main`
 * throws. `service`: systemd, if it started us with `Type=notify`. With `--version`, prints the version instead.
 */
export async function runProgram(
  name: string,
  main: (stop: Promise<void>, service: ServiceManager) => Promise<void>,
): Promise<void> {
  if (process.argv.includes("--version")) return console.log(version);
  keepMemoryOutOfCoreFiles();
  using service = openServiceManager(process.env, process.pid, systemClock);
  const stop = Promise.withResolvers<void>();
  const ask = stopWish(systemClock, stop.resolve, () => process.exit(130));
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, ask);
  process.once("disconnect", ask);
  try {
    await main(stop.promise, service);
    await service.heard();
    process.exit(0);
  } catch (error) {
    const priority = isJournal(2, process.env) ? "<3>" : "";
    if (error instanceof StartError) console.error(`${priority}${name}: ${plainText(error.message)}`);
    else console.error(error);
    process.exit(1);
  }
}

/**
 * Keeps the memory of this process and its later children out of core dumps: prompts, answers, keys. Linux only;
 * elsewhere use `ulimit -c 0`.
 */
function keepMemoryOutOfCoreFiles(): void {
  if (process.platform !== "linux") return;
  try {
    writeFileSync("/proc/self/coredump_filter", "0");
  } catch {
    // The kernel has no core dumps.
  }
}
