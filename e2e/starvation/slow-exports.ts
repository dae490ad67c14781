/** People of two accounts read their exports as slowly as possible, while a third account exports normally. */
import { request, type IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "../cluster/cluster.ts";
import { joinAsOwner } from "../cluster/portal-owner.ts";
import { connect } from "../cluster/usage-dump.ts";
import type { Attack, Target } from "./attack.ts";
import { inRounds } from "./rounds.ts";

const slowAccounts = ["slow-a", "slow-b"] as const;
/** Together more bytes than the sockets hold. */
const rows = 20_000;
const nameCharacters = 900;
const readersEach = 2;
const readEveryMs = 1_000;
const pauseMs = 2_000;

export const slowExports: Attack = {
  name: "exports that are read slowly",
  async prepare(cluster) {
    const given: Record<string, string> = {};
    for (const name of [...slowAccounts, "quick"]) {
      const owner = await joinAsOwner(cluster, { name: `Export-${name}`, email: `${name}@example.com` });
      given[name] = owner.cookie;
      if (name !== "quick") await fill(cluster, owner.accountId, owner.userId);
    }
    return given;
  },
  async run(target, signal) {
    const tally = { begun: 0, exported: 0, refused: 0 };
    const slow = inRounds(signal, async (over) => {
      const cookies = slowAccounts.flatMap((name) => Array<string>(readersEach).fill(target.given[name]!));
      await Promise.all(cookies.map(async (cookie) => (tally.begun += await readSlowly(target, cookie, over))));
    });
    do {
      const status = await exportQuickly(target);
      if (status === 200) tally.exported++;
      else tally.refused++;
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
    } while (!signal.aborted);
    await slow;
    return tally;
  },
  missing({ tally: { begun = 0, exported = 0 } }) {
    return begun > 0 && exported > 0 ? [] : [`${begun} slow exports have begun, ${exported} quick ones have ended`];
  },
  mistakes: ({ tally: { refused = 0 } }) => (refused === 0 ? [] : [`${refused} quick exports were refused`]),
};

async function fill(cluster: Cluster, accountId: string, userId: string): Promise<void> {
  await using client = await connect(cluster);
  await client.query(
    `insert into usage_days select $1, current_date, now(), $2, $3, repeat('m', ${nameCharacters}) || n, 1, n, 1, n + 1
     from generate_series(1, ${rows}) n`,
    [accountId, userId, crypto.randomUUID()],
  );
}

function open({ portalPort, localAddress }: Target, cookie: string, signal?: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const at = { host: "127.0.0.1", port: portalPort, path: "/api/usage.csv?by=model,key", localAddress };
    const asked = request({ ...at, headers: { cookie }, agent: false, signal }, resolve);
    asked.on("error", reject).end();
  });
}

/** Resolves with whether the answer began. */
async function readSlowly(target: Target, cookie: string, over: AbortSignal): Promise<number> {
  try {
    const answer = await open(target, cookie, over);
    answer.on("error", () => {}).pause();
    while (!over.aborted && !answer.destroyed) {
      answer.read(1);
      await sleep(readEveryMs, undefined, { signal: over }).catch(() => {});
    }
    return answer.statusCode === 200 ? 1 : 0;
  } catch {
    return 0; // the export was cut, or the round is over
  }
}

async function exportQuickly(target: Target): Promise<number> {
  try {
    const answer = await open(target, target.given["quick"]!);
    await answer.resume().toArray();
    return answer.statusCode!;
  } catch {
    return 0;
  }
}
