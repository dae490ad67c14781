/**
 * Whether the node is in maintenance: if either side says so. The routers keep their wish in their database and tell it
 * with every link; the operator's own, given with `weiche-agent`, is a file in the state directory: while the file is
 * there, the node is in maintenance, whatever became of the agent that was told.
 */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export class Maintenance {
  readonly #stateDir: string;
  readonly #file: string;
  #ofRouter = false;
  #ofOperator: boolean;

  /** Takes over what was wished of an earlier agent. */
  constructor(stateDir: string) {
    this.#stateDir = stateDir;
    this.#file = join(stateDir, "maintenance");
    this.#ofOperator = existsSync(this.#file);
  }

  get on(): boolean {
    return this.#ofRouter || this.#ofOperator;
  }

  routerSays(on: boolean): void {
    this.#ofRouter = on;
  }

  /** Returns when it would outlive a power cut. */
  operatorSays(on: boolean): void {
    if (on) writeFileSync(this.#file, "", { mode: 0o600, flush: true });
    else rmSync(this.#file, { force: true });
    syncDirectory(this.#stateDir);
    this.#ofOperator = on;
  }
}

function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
