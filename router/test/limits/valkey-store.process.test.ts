/** Tests two routers that share limits while their real server has faults. Each test has its own server. */
import { chmodSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { needs } from "@weiche/shared/testing/needs.ts";
import { systemClock, type Clock } from "@weiche/shared/time/clock.ts";
import { asId, uuidv7, type AccountId } from "@weiche/shared/ids.ts";
import { makeAuthority, makeCertificate } from "../../src/certificates/certificate-folder.ts";
import type { LimitStoreConfig } from "../../src/config/config.ts";
import { parseStore } from "../../src/config/store-address.ts";
import { MemoryLimiter } from "../../src/limits/memory-limiter.ts";
import { SharedLimiter } from "../../src/limits/shared-limiter.ts";
import { ValkeyStore } from "../../src/limits/valkey-store.ts";
import { temporaryFolder, until } from "../db/database-fixture.ts";
import { requestOf } from "./simulated-store.ts";
import { freePort, ValkeyServer } from "./valkey-server.ts";

/** Gives the store one second instead of 0.1 s, because a busy machine may be slower. */
const clock: Clock = { ...systemClock, after: (ms, then) => systemClock.after(ms === 100 ? 1_000 : ms, then) };
const account = asId<AccountId>("a");
const limits = { perMinute: 1_000, parallel: 4 };
const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

interface Routers extends AsyncDisposable {
  readonly limiters: readonly [SharedLimiter, SharedLimiter];
  /** The routers' events about the store, in order. */
  readonly told: string[];
  /** Resolves when both routers report this number of running requests. */
  shown(parallel: number, msMax: number): Promise<void>;
}

async function openRouters(address: string, more: Partial<LimitStoreConfig> = {}): Promise<Routers> {
  const told: string[] = [];
  const config = { ...parseStore(address)!, tlsFiles: {}, whenDown: "full", ...more } as const;
  const open = () =>
    SharedLimiter.open({
      store: new ValkeyStore({ config, routerId: uuidv7(clock), clock, random: () => 0.5 }),
      own: new MemoryLimiter(clock),
      clock,
      events: {
        limitStoreLost: (reason) => void told.push(`lost: ${reason}`),
        limitStoreBack: () => void told.push("back"),
        limitDecidedAlone() {},
        limitStoreAnswered() {},
      },
      whenDown: "full",
      routers: () => 2,
    });
  const limiters = await Promise.all([open(), open()]);
  const uses = () => Promise.all(limiters.map(async (limiter) => (await limiter.use(account)).parallel));
  return {
    limiters,
    told,
    shown: (parallel, msMax) =>
      until(`both to say ${parallel}`, msMax, async () => (await uses()).every((said) => said === parallel)),
    async [Symbol.asyncDispose]() {
      await Promise.all(limiters.map((limiter) => limiter[Symbol.asyncDispose]()));
    },
  };
}

/** Returns what was told, except answers that a busy machine gave too late. */
function surprises({ told }: Routers): string[] {
  return told.filter((what) => what !== "back" && what !== "lost: it took longer than 100 ms");
}

/** Starts two requests at the first router and one at the second. */
async function enterThree({ limiters: [one, other] }: Routers): Promise<void> {
  await one.enter(account, requestOf(1), limits);
  await one.enter(account, requestOf(2), limits);
  await other.enter(account, requestOf(3), limits);
}

interface Cable extends AsyncDisposable {
  readonly port: number;
  /** The number of connections made so far. */
  readonly opened: number;
  /** Keeps the present connections open but passes nothing on. New connections work. */
  cut(): void;
}

/** Opens a proxy. With `hidesEnd`, a connection stays open when the server ends it. */
async function openCable(to: number, hidesEnd = false): Promise<Cable> {
  const open = new Set<Socket>();
  const listener = createServer((socket) => {
    const onward = connect(to, "127.0.0.1");
    for (const end of [socket, onward]) open.add(end.on("error", () => {}));
    socket.pipe(onward).pipe(socket, { end: !hidesEnd });
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    port: (listener.address() as AddressInfo).port,
    get opened() {
      return open.size / 2;
    },
    cut: () => open.forEach((end) => end.unpipe().resume()),
    async [Symbol.asyncDispose]() {
      for (const end of open) end.destroy();
      listener.close();
    },
  };
}

const faults = {
  "is killed and starts again, empty": {
    lost: /ECONNREFUSED|the connection was lost/,
    begin: (server: ValkeyServer) => server.kill(),
    end: (server: ValkeyServer) => server.startAgain(),
  },
  "is stopped for a while": {
    lost: /^lost: it took longer than 100 ms$/,
    begin: (server: ValkeyServer) => server.signal("SIGSTOP"),
    end: (server: ValkeyServer) => server.signal("SIGCONT"),
  },
  "becomes a replica and again the primary": {
    lost: /READONLY|the connection was lost/,
    begin: (server: ValkeyServer) => server.tell("REPLICAOF", "127.0.0.1", "1"),
    end: (server: ValkeyServer) => server.tell("REPLICAOF", "NO", "ONE"),
  },
  "has no memory left": {
    lost: /OOM/,
    begin: (server: ValkeyServer) => server.tell("CONFIG", "SET", "maxmemory", "1"),
    end: (server: ValkeyServer) => server.tell("CONFIG", "SET", "maxmemory", "0"),
  },
} as const;

describe.concurrent("a store that", needs("valkey-server"), () => {
  test.each(Object.entries(faults))("%s", async (_name, { lost, begin, end }) => {
    await using server = await ValkeyServer.start();
    await using routers = await openRouters(server.url);
    const { limiters, told } = routers;
    await enterThree(routers);
    await routers.shown(3, 1_000);
    await begin(server);
    // Each router continues by its own count.
    for (const [n, limiter] of limiters.entries()) {
      const asked = Array.from({ length: 20 }, (_, more) =>
        limiter.enter(account, requestOf(100 * n + more + 10), limits),
      );
      const admitted = (await Promise.all(asked)).filter((decision) => decision.admitted).length;
      expect(admitted).toBe(limits.parallel - (n === 0 ? 2 : 1));
    }
    expect(told).toEqual([expect.stringMatching(lost), expect.stringMatching(lost)]);
    await end(server);
    await routers.shown(8, 5_000);
    expect(told.slice(2)).toEqual(["back", "back"]);
    for (const limiter of limiters)
      expect(await limiter.enter(account, requestOf(999), limits)).toMatchObject({ limit: "parallel" });
  });

  test("loses all data knows all running requests within 5 s, and no router exceeds the limit meanwhile", async () => {
    await using server = await ValkeyServer.start();
    await using routers = await openRouters(server.url);
    const [one] = routers.limiters;
    await enterThree(routers);
    await server.tell("FLUSHALL");
    const asked = Array.from({ length: 20 }, (_, n) => one.enter(account, requestOf(10 + n), limits));
    expect((await Promise.all(asked)).filter((decision) => decision.admitted).length).toBe(2);
    await routers.shown(5, 6_000);
    expect(surprises(routers)).toEqual([]);
  });

  test("becomes a replica is disconnected so that the routers look up its name again", async () => {
    await using server = await ValkeyServer.start();
    await using routers = await openRouters(server.url);
    const connections = async () =>
      [...String(await server.tell("CLIENT", "LIST")).matchAll(/id=(\d+) .*name=weiche-router/g)].map(([, id]) => id!);
    const before = await connections();
    await server.tell("REPLICAOF", "127.0.0.1", "1");
    for (const limiter of routers.limiters) await limiter.enter(account, requestOf(1), limits);
    await until(
      "two connections",
      5_000,
      async () => (await connections()).length === 2 && (await connections())[0] !== before[0],
    );
    expect((await connections()).filter((id) => before.includes(id))).toEqual([]);
  });

  test("disappears without closing its connections is connected to again", async () => {
    await using server = await ValkeyServer.start();
    await using cable = await openCable(server.port);
    await using routers = await openRouters(`valkey://127.0.0.1:${cable.port}`);
    await enterThree(routers);
    cable.cut();
    for (const limiter of routers.limiters) await limiter.enter(account, requestOf(4), limits);
    await routers.shown(5, 6_000);
    expect(routers.told.length).toBe(4);
  });

  test("gets a renewal ends only the other leases of the same router", async () => {
    await using server = await ValkeyServer.start();
    const config = { ...parseStore(server.url)!, tlsFiles: {}, whenDown: "full" } as const;
    const open = () => new ValkeyStore({ config, routerId: uuidv7(clock), clock, random: () => 0.5 });
    await using one = open();
    await using other = open();
    await until("a connection", 5_000, () =>
      Promise.all([one.use(account), other.use(account)]).then(
        () => true,
        () => false,
      ),
    );
    for (const n of [1, 2]) await one.enter(account, requestOf(n), limits);
    await other.enter(account, requestOf(3), limits);
    await one.renew(account, () => [[requestOf(2), true]]);
    expect(await one.use(account)).toEqual({ lastMinute: 3, parallel: 2 });
    await other.renew(account, () => []);
    expect(await one.use(account)).toEqual({ lastMinute: 3, parallel: 1 });
    // A request that asks for its place keeps its lease if it has one, and gets none here.
    const asking = [2, 4].map((n) => [requestOf(n), false] as const);
    await one.renew(account, () => asking);
    expect(await one.use(account)).toEqual({ lastMinute: 3, parallel: 1 });
    // The store knows the script of `enter`, not that of `renew`, so that the renewal is sent twice.
    await server.tell("SCRIPT", "FLUSH");
    await one.enter(account, requestOf(2), limits);
    const held = new Map([[requestOf(2), true]]);
    const renewed = one.renew(account, () => held);
    held.set(requestOf(5), true);
    await Promise.all([renewed, one.enter(account, requestOf(5), limits)]);
    expect(await one.use(account)).toEqual({ lastMinute: 4, parallel: 2 });
  });

  test("loses its scripts receives them again", async () => {
    await using server = await ValkeyServer.start();
    await using routers = await openRouters(server.url);
    await enterThree(routers);
    await server.tell("SCRIPT", "FLUSH");
    expect(await routers.limiters[0].enter(account, requestOf(4), limits)).toEqual({ admitted: true });
    expect(await routers.limiters[1].enter(account, requestOf(5), limits)).toMatchObject({ limit: "parallel" });
    expect(surprises(routers)).toEqual([]);
  });

  test("has a clock behind the newest admission, as after a failover, continues from the admission's time", async () => {
    await using server = await ValkeyServer.start();
    await using routers = await openRouters(server.url);
    const [one] = routers.limiters;
    const [times, live] = [`weiche:{${account}}:times`, `weiche:{${account}}:live`];
    const ahead = String((Date.now() + 3_600_000) * 1_000);
    await server.tell("LPUSH", times, ahead);
    await server.tell("ZADD", live, String(Number(ahead) + 1_000_000), "other:r1");
    expect(await one.enter(account, requestOf(1), { perMinute: 2, parallel: 2 })).toEqual({ admitted: true });
    expect(await server.tell("LINDEX", times, "0")).toBe(ahead);
    expect(await one.enter(account, requestOf(2), { perMinute: 3, parallel: 2 })).toMatchObject({ limit: "parallel" });
    one.leave(account, requestOf(1));
    const refused = await one.enter(account, requestOf(3), { perMinute: 2, parallel: 2 });
    expect(refused).toEqual({ admitted: false, limit: "minute", retryAfterMs: 60_000 });
  });
});

describe.concurrent("a store is reached", needs("valkey-server"), () => {
  // The same rights as in docs/install.md.
  const rights = [
    "~weiche:*",
    "+@connection",
    "+eval",
    "+evalsha",
    "+info",
    "+time",
    "+@list",
    "+@sortedset",
    "+pexpire",
  ];

  test("by a user with a password and few rights, and a wrong password is reported without the password", async () => {
    await using server = await ValkeyServer.start();
    await server.tell("ACL", "SETUSER", "limits", "on", ">right-horse", ...rights);
    await server.tell("ACL", "SETUSER", "default", "off");
    const address = server.url.replace("//", "//limits@");
    await using routers = await openRouters(address, { password: "right-horse" });
    await enterThree(routers);
    await routers.shown(3, 1_000);
    expect(surprises(routers)).toEqual([]);
    await using refused = await openRouters(address, { password: "wrong-horse" });
    expect(refused.told).toEqual(Array(2).fill(expect.stringMatching(/^lost: WRONGPASS /)));
    expect(JSON.stringify(refused.told)).not.toContain("horse");
  });

  test("through Sentinels, also after they have made the replica the primary", async () => {
    await using primary = await ValkeyServer.start();
    await using replica = await ValkeyServer.start("--replicaof", "127.0.0.1", String(primary.port));
    const file = join(folder.path, "sentinel.conf");
    const lines = [`monitor weiche 127.0.0.1 ${primary.port} 1`, "down-after-milliseconds weiche 300"];
    writeFileSync(file, lines.map((line) => `sentinel ${line}\n`).join(""));
    await using sentinel = await ValkeyServer.start(file, "--sentinel");
    await until("the Sentinel to know the replica", 20_000, async () =>
      String(await sentinel.tell("SENTINEL", "REPLICAS", "weiche")).includes(String(replica.port)),
    );
    const addresses = `127.0.0.1:${await freePort()},127.0.0.1:${sentinel.port}`;
    await using routers = await openRouters(`valkey+sentinel://${addresses}/weiche`);
    await enterThree(routers);
    await routers.shown(3, 1_000);
    expect(surprises(routers)).toEqual([]);
    await primary.kill();
    // The replica disconnects its clients while it becomes the primary.
    const role = () => replica.tell("ROLE").catch(() => "");
    await until("the replica to be the primary", 30_000, async () => String(await role()).startsWith("master"));
    await until("both routers to find the new primary", 5_000, () =>
      routers.limiters.every((limiter) => !limiter.alone),
    );
    await routers.shown(3, 5_000);
  });

  test("over TLS with the authority and a client certificate, and not without either", async () => {
    const ca = join(folder.path, "ca");
    const making = { folder: ca, nowMs: Date.now() };
    makeAuthority(making);
    makeCertificate(making, "router", ["127.0.0.1"]);
    const file = (name: string) => join(ca, name);
    const [cert, key] = [file("router-127.0.0.1.pem"), file("router-127.0.0.1.key")];
    const port = await freePort();
    const files = ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", file("ca.pem")];
    await using server = await ValkeyServer.start("--tls-port", String(port), ...files, "--tls-auth-clients", "yes");
    const address = server.url.replace(/.*/, `valkeys://127.0.0.1:${port}/3`);
    await using routers = await openRouters(address, { tlsFiles: { ca: file("ca.pem"), cert, key } });
    await enterThree(routers);
    await routers.shown(3, 1_000);
    expect(surprises(routers)).toEqual([]);
    await using unknown = await openRouters(address);
    expect(unknown.told[0]).toMatch(/self-signed certificate|unable to (get|verify)/);
    await using unnamed = await openRouters(address, { tlsFiles: { ca: file("ca.pem") } });
    expect(unnamed.told[0]).toMatch(/^lost: /);
    await using cable = await openCable(port, true);
    await using stale = await openRouters(address.replace(`${port}`, `${cable.port}`), {
      tlsFiles: { ca: file("ca.pem") },
    });
    await until("two routers to connect anew after the second error of a connection", 10_000, () => cable.opened > 2);
    expect(stale.told[0]).toMatch(/^lost: /);
    const open = join(folder.path, "open.key");
    writeFileSync(open, "key");
    chmodSync(open, 0o644);
    await expect(openRouters(address, { tlsFiles: { cert, key: open } })).rejects.toThrow(/gives other users access/);
  });
});
