/**
 * An attack with keys of four accounts: bodies of 20 MB that are announced and never arrive, or stop after a part. If
 * announcements took memory, three accounts would hold all memory for bodies except the part kept apart, and the fourth
 * account that part. Meanwhile another account sends bodies of 2 MB, which must be answered.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { postFrom, type Attack } from "./attack.ts";
import { inRounds } from "./rounds.ts";

const accounts = ["a", "b", "c"] as const;
/** Comes last. It announces one more large body, and one that fits into the remaining memory. */
const last = "d";
/** A package allows 20 concurrent requests. */
const bodiesEach = 18;
const announcedBytes = 20 << 20;
const leftOverBytes = 14_000_000;
const part = "a".repeat(1_200_000);
const byteEveryMs = 500;

/** Replaces the status if the connection was closed without one. */
const closed = 0;

export const unsentBodies: Attack = {
  name: "large bodies that do not come",
  async prepare(cluster) {
    const names = [...accounts, last, "good"] as const;
    const keys = await Promise.all(
      names.map(async (name) => [name, (await cluster.account(`Unsent-${name}`)).apiKey] as const),
    );
    return Object.fromEntries(keys);
  },
  async run({ apiPort, localAddress, given }, signal) {
    const tally = { opened: 0, answered: 0, refused: 0 };
    const body = JSON.stringify({
      ...{ model: "sim", messages: [{ role: "user", content: "sim:tokens=1" }] },
      x: "a".repeat(2_000_000),
    });
    const headers = { authorization: `Bearer ${given["good"]}` };
    await inRounds(signal, async (over) => {
      const announce = (account: string, bytes: number, more = ""): Socket => {
        const socket = connect({ port: apiPort, host: "127.0.0.1", localAddress: addressOf(account) });
        const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer ${given[account]}\r\ncontent-length: ${bytes}\r\n\r\n{"x":"`;
        socket.on("connect", () => (tally.opened++, socket.write(head + more)));
        return socket.on("error", () => {}).resume();
      };
      const sockets = accounts.flatMap((account) =>
        Array.from({ length: bodiesEach }, (_, n) => announce(account, announcedBytes, n % 2 === 0 ? "" : part)),
      );
      for (const bytes of [announcedBytes, leftOverBytes]) {
        await sleep(byteEveryMs);
        sockets.push(announce(last, bytes));
      }
      do {
        await sleep(byteEveryMs);
        for (const socket of sockets) if (socket.writable) socket.write("a");
        const status = await postFrom(localAddress, apiPort, "/v1/chat/completions", body, { headers }).catch(
          () => closed,
        );
        if (status === 200) tally.answered++;
        else tally.refused++;
      } while (!over.aborted);
      for (const socket of sockets) socket.destroy();
    });
    return tally;
  },
  missing({ tally: { opened = 0, answered = 0 } }) {
    return opened > 0 && answered > 0 ? [] : [`${opened} connections were opened, ${answered} good bodies answered`];
  },
  mistakes: ({ tally: { refused = 0 } }) => (refused === 0 ? [] : [`${refused} good bodies were refused`]),
};

function addressOf(account: string): string {
  return `127.12.${account.charCodeAt(0)}.1`;
}
