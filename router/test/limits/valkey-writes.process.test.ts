/** Tests how many writes a router needs for its commands to a store. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { asId, uuidv7, type AccountId } from "@weiche/shared/ids.ts";
import { needs } from "@weiche/shared/testing/needs.ts";
import { systemClock as clock } from "@weiche/shared/time/clock.ts";
import { parseStore } from "../../src/config/store-address.ts";
import { ValkeyStore } from "../../src/limits/valkey-store.ts";
import { until } from "../db/database-fixture.ts";
import { requestOf } from "./simulated-store.ts";
import { ValkeyServer } from "./valkey-server.ts";

const account = asId<AccountId>("a");
const limits = { perMinute: 1_000, parallel: 4 };

/** Records how many commands each later write to this port contains. */
function watchWrites(port: number): Disposable & { readonly commands: number[] } {
  const commands: number[] = [];
  const watch = (message: unknown) => {
    const { socket } = message as { readonly socket: Socket };
    const write = socket._write.bind(socket);
    const writev = socket._writev!.bind(socket);
    const note = (count: number) => void (socket.remotePort === port && commands.push(count));
    socket._write = (...rest) => (note(1), write(...rest));
    socket._writev = (chunks, sent) => (note(chunks.length), writev(chunks, sent));
  };
  subscribe("net.client.socket", watch);
  return { commands, [Symbol.dispose]: () => void unsubscribe("net.client.socket", watch) };
}

test(
  "several commands of one turn of the event loop reach the store in one write",
  needs("valkey-server"),
  async () => {
    await using server = await ValkeyServer.start();
    using written = watchWrites(server.port);
    const config = { ...parseStore(server.url)!, tlsFiles: {}, whenDown: "full" } as const;
    await using store = new ValkeyStore({ config, routerId: uuidv7(clock), clock, random: () => 0.5 });
    const answers = () =>
      store.use(account).then(
        () => true,
        () => false,
      );
    await until("the store to answer", 5_000, answers);
    const before = written.commands.length;
    const asked = [1, 2, 3].map((n) => store.enter(account, requestOf(n), limits));
    expect((await Promise.all(asked)).every((decision) => decision.admitted)).toBe(true);
    const left = [1, 2, 3].map((n) => store.leave(account, requestOf(n)));
    await Promise.all(left);
    // The server did not know the script, so the router sent it.
    expect(written.commands.slice(before)).toEqual([3, 3, 3]);
  },
);
