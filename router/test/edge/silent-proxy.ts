/** A proxy to a database that can silence its open connections for ever, like a cut cable, and optionally new ones. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import type { Database } from "../../src/db/database.ts";

export interface SilentProxy extends Disposable {
  /** The URL of the database behind this proxy. */
  readonly url: string;
  silenceAll(): void;
  /** Number of connections made so far. */
  readonly connections: number;
  /** If false, new connections get no answer. */
  isOpen: boolean;
}

export async function openSilentProxy(of: Database): Promise<SilentProxy> {
  const { port, pathname, username, password, searchParams } = new URL(of.connection.connectionString!);
  const pairs: { readonly near: Socket; readonly far: Socket }[] = [];
  const listener = createServer((near) => {
    const far = connect(join(searchParams.get("host")!, `.s.PGSQL.${port}`));
    pairs.push({ near, far });
    near.on("error", () => {}).on("close", () => far.destroy());
    far.on("error", () => {}).on("close", () => near.destroy());
    if (proxy.isOpen) near.pipe(far).pipe(near);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const proxy: SilentProxy = {
    url: `postgres://${username}:${password}@127.0.0.1:${(listener.address() as AddressInfo).port}${pathname}`,
    isOpen: true,
    get connections() {
      return pairs.length;
    },
    silenceAll: () => pairs.forEach(({ near, far }) => (near.unpipe(far), far.unpipe(near))),
    [Symbol.dispose]() {
      listener.close();
      for (const { near } of pairs) near.destroy();
    },
  };
  return proxy;
}
