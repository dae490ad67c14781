/**
 * Decides whether the node is in maintenance, which a router or the operator of this host can set. Routers store their
 * setting and send it on every link. The operator's setting is a file in the state directory, so that it outlives the
 * agent.
 */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export class Maintenance {
  readonly #stateDir: string;
  readonly #file: string;
  #ofRouter = false;
  #ofOperator: boolean;

  /** Reads the operator's setting from the state directory. */
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

  /** Returns once the setting would survive a power cut. */
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
