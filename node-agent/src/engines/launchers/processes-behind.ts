/**
 * Finds the processes of an external engine: its listener, the listener's group and all descendants, or all processes
 * of the listener's user if it may not be inspected. Linux only.
 */
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { isLoopback } from "@weiche/shared/http/listen.ts";
import { parseStat, readPids, type ProcStat } from "../../host/proc.ts";

type Known = Pick<ProcStat, "parent" | "group"> & { readonly pid: number };

/** Undefined if no listener is visible, for example on another host or in a container's own network. */
export async function processesBehind(url: string, proc = "/proc"): Promise<ReadonlySet<number> | undefined> {
  const { protocol, hostname, port } = new URL(url);
  if (!isLoopback(hostname.replace(/^\[|\]$/g, ""))) return undefined;
  const listener = await listenerAt(Number(port || (protocol === "https:" ? 443 : 80)), proc);
  if (!listener) return undefined;
  const pids = await readPids(proc);
  const holders = await filterAsync(pids, (pid) => holds(`${proc}/${pid}/fd`, `socket:[${listener.inode}]`));
  if (holders.length > 0) return family(holders, await Promise.all(pids.map((pid) => known(pid, proc))));
  const ofUser = await filterAsync(pids, async (pid) => (await stat(`${proc}/${pid}`)).uid === listener.uid);
  return ofUser.length > 0 ? new Set(ofUser) : undefined;
}

const listening = "0A";

/** Columns: number, local address, remote address, state, queues, timer, retransmissions, user, timeout, inode. */
async function listenerAt(port: number, proc: string) {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(join(proc, "net", name), "utf8").catch(() => "")),
  );
  for (const line of tables.flatMap((table) => table.split("\n"))) {
    const [, local, , state, , , , uid, , inode] = line.trim().split(/\s+/);
    if (state === listening && local?.endsWith(suffix)) return { uid: Number(uid), inode: inode! };
  }
  return undefined;
}

async function holds(directory: string, socket: string): Promise<boolean> {
  for (const name of await readdir(directory)) if ((await readlink(join(directory, name))) === socket) return true;
  return false;
}

async function known(pid: number, proc: string): Promise<Known | undefined> {
  const text = await readFile(`${proc}/${pid}/stat`, "utf8").catch(() => undefined);
  return text === undefined ? undefined : { pid, ...parseStat(text) };
}

/** Returns the holders, their groups, and all their descendants. */
function family(holders: readonly number[], all: readonly (Known | undefined)[]): ReadonlySet<number> {
  const living = all.filter((one) => one !== undefined);
  const groups = new Set(living.filter(({ pid }) => holders.includes(pid)).map(({ group }) => group));
  const members = new Set([...holders, ...living.filter(({ group }) => groups.has(group)).map(({ pid }) => pid)]);
  for (let before = -1; before !== members.size;) {
    before = members.size;
    for (const { pid, parent } of living) if (members.has(parent)) members.add(pid);
  }
  return members;
}

/** Drops items whose check fails, because processes come and go. */
async function filterAsync<T>(items: readonly T[], holdsFor: (item: T) => Promise<boolean>): Promise<readonly T[]> {
  const kept = await Promise.all(items.map((item) => holdsFor(item).catch(() => false)));
  return items.filter((_, index) => kept[index]);
}
