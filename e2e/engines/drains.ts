/**
 * Sends SIGTERM to the router or an agent under load, in situations in which a stop could hang or cut running answers.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { until, type RunningProgram } from "../cluster/cluster.ts";
import type { Ending } from "../cluster/api-client.ts";
import { postmasterOf } from "../cluster/usage-dump.ts";
import { post, stream } from "../billing/endings.ts";
import { KillCluster } from "../billing/kill-cluster.ts";
import { RawClient } from "@weiche/router/test/edge/raw-client.ts";

export const programs = ["router", "agent"] as const;
export type Program = (typeof programs)[number];

/** Time in which a stopping program lets answers end before it cuts them. */
const graceSeconds = 3;
/** The grace time, the time that each part has to close, and extra time for a busy machine. */
const exitMsMax = 40_000;

interface Drained {
  /** Time from SIGTERM until the program reported that it is not ready. */
  readonly unreadyMs: number;
  /** How the running answers ended. */
  readonly running: readonly Ending[];
  /** Whether an answer continued after the program was unready, which shows that no answer was cut. */
  readonly unreadyFirst: boolean;
  /** How a request ended that arrived after the program was unready. */
  readonly late: Ending;
  readonly exit: number | NodeJS.Signals;
}

/** Creates the situation, and returns a function that ends it. */
type Situation = (system: KillCluster) => Promise<() => Promise<unknown>>;

const situations = {
  "nothing else": async () => async () => {},
  "idle open connections": async (system) => {
    const sockets: Socket[] = [];
    for (const name of ["api", "portal", "ops"]) {
      const port = Number(system.cluster.router.listen[name]!.split(":")[1]);
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      await once(socket, "connect");
      sockets.push(socket);
    }
    return async () => sockets.forEach((socket) => socket.destroy());
  },
  "a client that does not read": async (system) => {
    const client = new RawClient(Number(system.cluster.router.listen["api"]!.split(":")[1]));
    client.send(post(system.accounts[0]!.apiKey, stream("tokens=30000,itl=0,ttft=1")));
    await once(client.socket, "data");
    client.socket.pause();
    return async () => client.socket.destroy();
  },
  "an engine that hangs": async (system) => {
    const hanging = system.ask({ steering: "fault=hang:3" });
    await sleep(100);
    return () => hanging;
  },
  "a node that floods it with messages": async (system) => {
    const port = system.cluster.router.listen["nodes"]!.split(":")[1]!;
    const node = fork(join(import.meta.dirname, "flooding-node.ts"), [port]);
    await once(node, "message");
    await until("the router to refuse a message above the bounds", async () => (await refusedLinks(system)) > 0);
    return async () => {
      node.kill("SIGKILL");
      await once(node, "exit");
    };
  },
  "a frozen database": async (system) => {
    // Without the database, a router that has just started knows no key.
    await Promise.all(system.accounts.map(() => system.ask({ kind: "json" })));
    const pids = serverProcesses(postmasterOf(system.cluster).pid);
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    return async () => pids.forEach((pid) => signalIfThere(pid, "SIGCONT"));
  },
} satisfies Record<string, Situation>;

export type SituationName = keyof typeof situations;
export const situationNames = Object.keys(situations) as readonly SituationName[];

export function startDrainCluster(): Promise<KillCluster> {
  const grace = { shutdownSeconds: graceSeconds };
  return KillCluster.start({ nodes: 1, accounts: 4, router: grace, agent: grace, itlMs: 20 });
}

export async function drain(system: KillCluster, what: Program, situation: SituationName): Promise<Drained> {
  const leave = await situations[situation](system);
  const program = what === "router" ? system.cluster.router : system.cluster.agents.get("node-1")!;
  try {
    return await stopUnderLoad(system, program);
  } finally {
    await leave();
    await (what === "router" ? system.cluster.startRouter() : system.startAgent("node-1"));
    await system.cluster.linked();
  }
}

/** Counts the links that the router closed because a node broke the protocol. */
async function refusedLinks(system: KillCluster): Promise<number> {
  const metrics = await fetch(`http://${system.cluster.router.listen["ops"]}/metrics`);
  return Number(/^weiche_router_nodes_refused_total\{reason="invalid"\} (\d+)/m.exec(await metrics.text())?.[1] ?? 0);
}

async function stopUnderLoad(system: KillCluster, program: RunningProgram): Promise<Drained> {
  let begun = 0;
  const onPiece = (pieces: number) => pieces === 1 && begun++;
  const running = Array.from({ length: 5 }, () => system.ask({ onPiece }));
  await until("the streams to begin", () => begun === running.length);
  let ended = 0;
  for (const each of running) void each.then(() => ended++);
  program.kill("SIGTERM");
  const toldMs = performance.now();
  await until("the program to be unready", () => isUnready(program));
  const unreadyMs = performance.now() - toldMs;
  const unreadyFirst = ended < running.length;
  const late = await system.ask({ kind: "json" });
  const endings = (await Promise.all(running)).map(({ ending }) => ending);
  const exit = await exitOf(program);
  return { unreadyMs, running: endings, unreadyFirst, late: late.ending, exit };
}

/** Returns whether the program is unready. Also true if nothing listens any more. */
async function isUnready({ listen }: RunningProgram): Promise<boolean> {
  return fetch(`http://${listen["ops"]}/readyz`).then(
    ({ status }) => status === 503,
    () => true,
  );
}

async function exitOf(program: RunningProgram): Promise<number | NodeJS.Signals> {
  const stuck = new AbortController();
  const bound = sleep(exitMsMax, undefined, { signal: stuck.signal }).then(() =>
    Promise.reject(new Error("the program does not end")),
  );
  return Promise.race([program.exited(), bound]).finally(() => stuck.abort());
}

/** Returns the database server's main process and its children. */
function serverProcesses(pid: number): number[] {
  const children = readdirSync("/proc").filter((name) => {
    try {
      return (
        /^\d+$/.test(name) && readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]!.split(" ")[1] === `${pid}`
      );
    } catch {
      return false; // the process has just ended
    }
  });
  return [pid, ...children.map(Number)];
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {} // the stop has ended the process
}
