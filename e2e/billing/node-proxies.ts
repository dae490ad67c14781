/** Opens TCP proxies between each node of a cluster and its router, one for the link and one for data connections. */
import { openTcpProxy, type TcpProxy } from "../links/tcp-proxy.ts";

export interface NodeProxies {
  readonly host: string;
  readonly link: TcpProxy;
  readonly data: TcpProxy;
}

/** All data proxies have the same port, each on a different loopback address. */
export async function openProxies(
  nodes: number,
  opened: AsyncDisposableStack,
): Promise<ReadonlyMap<string, NodeProxies>> {
  const proxies = new Map<string, NodeProxies>();
  let port = 0;
  for (let number = 1; number <= nodes; number++) {
    const host = `127.0.1.${number}`;
    const data = opened.use(await openTcpProxy(0, { host, port }));
    const link = opened.use(await openTcpProxy(0, { host }));
    port = data.port;
    proxies.set(`node-${number}`, { host, link, data });
  }
  return proxies;
}
