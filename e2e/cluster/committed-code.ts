/**
 * Installs Weiche at a commit in a separate clone, so that its programs run beside the programs of the working tree.
 */
import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface CommittedCode extends Disposable {
  readonly commit: string;
  /** The folder of the clone. */
  readonly root: string;
}

const root = join(import.meta.dirname, "../..");

/** Clones and installs the commit, which takes half a minute. Throws if it is not in this clone or cannot be installed. */
export async function checkOut(commit: string): Promise<CommittedCode> {
  using opened = new DisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "weiche-before-"));
  opened.defer(() => rmSync(directory, { recursive: true, force: true }));
  // If root runs this, the embedded database runs as another user, who must be able to enter.
  chmodSync(directory, 0o755);
  const found = git("rev-parse", "--verify", "--quiet", `${commit}^{commit}`);
  if (found.status !== 0)
    throw new Error(`commit ${commit} is not in this clone; a shallow one gets it with: git fetch --unshallow`);
  done("git clone", git("clone", "--quiet", "--shared", "--no-checkout", root, directory));
  done("git checkout", git("-C", directory, "checkout", "--quiet", "--detach", found.stdout.trim()));
  const install = spawnSync(process.execPath, [join(directory, "deploy/install-if-needed.mjs")], { encoding: "utf8" });
  done("its packages", install);
  const closing = opened.move();
  return { commit, root: directory, [Symbol.dispose]: () => closing.dispose() };
}

function git(...args: string[]): SpawnSyncReturns<string> {
  return spawnSync("git", args, { cwd: root, encoding: "utf8" });
}

function done(what: string, { status, stderr, error }: SpawnSyncReturns<string>): void {
  if (status !== 0) throw new Error(`${what} of the commit to compare with: ${error?.message ?? stderr.trim()}`);
}
