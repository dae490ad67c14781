/** Cuts the cable between router and agent: connections stay open, but no bytes pass. Both sides notice. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Cluster, until } from "../cluster/cluster.ts";
import { catalogueOf, simEngine } from "../cluster/sim-node.ts";
import { askStream, type Answer } from "../cluster/api-client.ts";
import { openTcpProxy, type TcpProxy } from "../links/tcp-proxy.ts";

const opened = new AsyncDisposableStack();
const noticedMsMax = 5_000;
let cluster: Cluster;
let proxies: readonly TcpProxy[];
let apiKey: string;

beforeAll(async () => {
  const [links, data] = [opened.use(await openTcpProxy()), opened.use(await openTcpProxy())];
  proxies = [links, data];
  cluster = opened.use(
    await Cluster.start({
      catalogue: catalogueOf("model-a"),
      agents: {},
      router: { nodes: { announce: `127.0.0.1:${links.port}`, dataAdvertise: `127.0.0.1:${data.port}` } },
    }),
  );
  const portOf = (name: string) => Number(cluster.router.listen[name]!.split(":")[1]);
  links.to(portOf("nodes"));
  data.to(portOf("data"));
  const slots = [{ name: "a", engines: [simEngine("model-a")] }];
  await cluster.startAgent("node-1", { slots, routers: [`127.0.0.1:${links.port}`] });
  await cluster.linked();
  ({ apiKey } = await cluster.account());
});
afterAll(() => opened.disposeAsync());

function ask(text: string, onPiece?: (pieces: number) => void): Promise<Answer> {
  return askStream({ baseUrl: cluster.baseUrl, apiKey, model: "model-a", text, onPiece });
}

async function linkUp(program: "router" | "agent"): Promise<boolean> {
  const ops = program === "router" ? cluster.router.listen["ops"] : cluster.agents.get("node-1")!.listen["ops"];
  const text = await (await fetch(`http://${ops}/metrics`)).text();
  return /^weiche_(?:router_node|agent_router)_link_up\{.*\} 1$/m.test(text);
}

test("both sides notice a half-open link within 5 s, its stream ends with an error, and the link heals [C1]", async () => {
  expect(await ask("sim:tokens=3")).toMatchObject({ ending: "whole" });
  expect([await linkUp("router"), await linkUp("agent")]).toEqual([true, true]);
  let cutMs = 0;
  const cut = ask("sim:tokens=2000,itl=20", (pieces) => {
    if (pieces !== 5) return;
    for (const proxy of proxies) proxy.silence();
    cutMs = performance.now();
  });
  await until("the cut", () => cutMs > 0);
  await until("the router to notice", async () => !(await linkUp("router")), noticedMsMax);
  await until("the agent to notice", async () => !(await linkUp("agent")), noticedMsMax);
  expect(await cut).toMatchObject({ ending: "error" });
  expect(performance.now() - cutMs).toBeLessThan(noticedMsMax);
  expect(await ask("sim:tokens=3")).toMatchObject({
    ending: "refused",
    status: 503,
    error: { code: "no_node_available" },
  });
  for (const proxy of proxies) proxy.speak();
  // Repeated requests meanwhile would use up the account's requests per minute.
  await until("the link to heal", async () => (await linkUp("router")) && (await linkUp("agent")));
  await until("an answer", async () => (await ask("sim:tokens=3")).ending === "whole");
});
