/**
 * Keeps links to all routers, configured or announced by other routers. Names are resolved repeatedly and each address
 * gets a link, so that every router behind a name is found. A router with two addresses is linked once.
 */
import { isIP } from "node:net";
import type { DesiredState, RouterList, Welcome } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { sleep, type Timer } from "@weiche/shared/time/clock.ts";
import { formatListen, isLoopback } from "@weiche/shared/http/listen.ts";
import { SingleFlight } from "@weiche/shared/time/single-flight.ts";
import { Backoff } from "./backoff.ts";
import { DataLink } from "./data-link.ts";
import { explainFailure } from "./link-trouble.ts";
import { reportSpacingMs } from "./load.ts";
import { describeAddress, RouterAddresses } from "./router-addresses.ts";
import { endedInOrder, RouterLink, type RouterAddress } from "./router-link.ts";
import type { RouterLinksOptions } from "./router-links-options.ts";
import { readRules, type Downlink } from "./router-link-codec.ts";

export interface RouterState {
  readonly address: string;
  /** `leaving`: the router stops and lets running requests end. */
  readonly state: "linked" | "leaving" | "connecting";
  readonly dataSessions: number;
  /** The version of the linked router. Undefined if it reports none. */
  readonly version?: string;
  /** Why it is not linked, once a link has failed. */
  readonly reason?: string;
}

/** A thousand nodes learn of a new router at once, so they dial it at different times. */
const spreadMs = 2_000;
const resolveEveryMs = 30_000;
/** The pause while a name does not resolve. */
const resolveAgainMs = 2_000;
const closeMsMax = 2_000;

/** An address of a router. */
interface Dialled {
  readonly address: RouterAddress;
  readonly backoff: Backoff;
  /** The open links: two while a new certificate replaces an old one. */
  readonly links: Set<RouterLink>;
  newest?: RouterLink;
  /** The last router that was found or announced there. */
  routerId: string | undefined;
  /** The reason of the last link that failed, as gRPC reports it. */
  failure?: string;
  /** The same in words. */
  why?: string;
  /** The name no longer resolves to this address, so it is not dialled again. */
  isGone: boolean;
}

export class RouterLinks {
  readonly #options: RouterLinksOptions;
  readonly #addresses: RouterAddresses;
  readonly #dialled = new Map<string, Dialled>();
  /** The link in use to each router. */
  readonly #live = new Map<string, RouterLink>();
  readonly #dataLinks = new Map<string, DataLink>();
  readonly #stop = new AbortController();
  readonly #loops = new Set<Promise<void>>();
  readonly #ignoreTls: (() => void) | undefined;
  readonly #resolving: SingleFlight;
  #reportTimer: Timer | undefined;
  #reportedAtMs = -Infinity;
  #generation = 0n;
  #isDraining = false;

  constructor(options: RouterLinksOptions) {
    this.#options = options;
    this.#addresses = new RouterAddresses(options.routers, options.resolve, options.events);
    this.#ignoreTls = options.tls?.onChange(() => this.#renewAll());
    this.#resolving = new SingleFlight(options.clock, () => this.#resolve(), resolveAgainMs);
    this.#resolving.wish();
  }

  /** Reports to every router now, or after the minimum pause. */
  reportSoon(): void {
    const { clock } = this.#options;
    const waitMs = this.#reportedAtMs + reportSpacingMs - clock.monotonicMs();
    this.#reportTimer ??= clock.after(Math.max(0, waitMs), () => {
      this.#reportTimer = undefined;
      this.#reportedAtMs = clock.monotonicMs();
      for (const link of this.#live.values()) link.report();
    });
  }

  states(): readonly RouterState[] {
    const dialled = [...this.#dialled.values()].map(({ address, routerId = "", why }) => ({
      address: describeAddress(address),
      state: stateOf(this.#live.get(routerId)),
      dataSessions: this.#dataLinks.get(routerId)?.connections ?? 0,
      version: this.#live.get(routerId)?.routerVersion,
      ...(why !== undefined && !this.#live.has(routerId) && { reason: why }),
    }));
    const unknown = this.#addresses.unknown().map(({ code, ...listen }) => ({
      address: formatListen(listen),
      state: "connecting" as const,
      dataSessions: 0,
      reason: `the name ${listen.host} does not resolve (${code}): check DNS or /etc/hosts`,
    }));
    return [...dialled, ...unknown];
  }

  /** Lets running requests end, for at most `deadlineMs`. Links stay, to deliver usage. */
  async drain(deadlineMs: number): Promise<void> {
    this.#isDraining = true;
    await Promise.all([...this.#dataLinks.values()].map((dataLink) => dataLink.close(deadlineMs)));
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error("the agent stops"));
    this.#ignoreTls?.();
    void this.#resolving[Symbol.asyncDispose](); // A name may take long to resolve.
    this.#reportTimer?.cancel();
    await this.drain(0);
    const links = [...this.#dialled.values()].flatMap((dialled) => [...dialled.links]);
    await Promise.all(links.map((link) => link.close(closeMsMax)));
    await Promise.all(this.#loops);
  }

  /** Resolves all names, dials new addresses, and schedules the next run. */
  async #resolve(): Promise<void> {
    const addresses = await this.#addresses.find(this.#announced());
    for (const [key, dialled] of this.#dialled) dialled.isGone = !addresses.has(key);
    if (this.#stop.signal.aborted) return;
    for (const [key, address] of addresses) if (!this.#dialled.has(key)) this.#begin(key, address);
    this.#resolving.wish(this.#addresses.someUnresolved ? resolveAgainMs : resolveEveryMs);
  }

  #begin(key: string, address: RouterAddress): void {
    const { clock, random } = this.#options;
    const { routerId } = address;
    const dialled: Dialled = {
      address,
      backoff: new Backoff(clock, random),
      links: new Set(),
      routerId,
      isGone: false,
    };
    this.#dialled.set(key, dialled);
    const loop = this.#keepLinked(dialled)
      .catch((error) => {
        if (!this.#stop.signal.aborted) throw error;
      })
      .finally(() => {
        this.#dialled.delete(key);
        this.#loops.delete(loop);
      });
    this.#loops.add(loop);
  }

  async #keepLinked(dialled: Dialled): Promise<void> {
    const { clock, random } = this.#options;
    if (dialled.routerId !== undefined) await sleep(clock, random() * spreadMs, this.#stop.signal);
    while (!dialled.isGone && !this.#stop.signal.aborted) {
      const isLinkedElsewhere = dialled.routerId !== undefined && this.#live.has(dialled.routerId);
      if (!isLinkedElsewhere) {
        this.#dial(dialled);
        while (dialled.links.size > 0) await Promise.race([...dialled.links].map(({ ended }) => ended));
        this.#resolving.wish();
      }
      await sleep(clock, dialled.backoff.nextMs(), this.#stop.signal);
    }
  }

  /** Returns addresses of further routers. Without TLS only routers of this host are dialled. */
  #announced() {
    const linkedBy = (routerId: string) => {
      const link = this.#live.get(routerId);
      const dialled = link && [...this.#dialled.values()].find(({ links }) => links.has(link));
      return dialled && formatListen(dialled.address);
    };
    const { known, tls } = this.#options;
    return known.addresses(linkedBy).filter(({ host }) => tls !== undefined || isLoopback(host));
  }

  #dial(dialled: Dialled): void {
    const link = new RouterLink(dialled.address, this.#options, (message) => this.#take(message, link, dialled));
    dialled.newest = link;
    dialled.links.add(link);
    void link.ended.then((reason) => this.#ended(link, dialled, reason));
  }

  /** Opens links with the new certificate. An old link ends once the new one is accepted. */
  #renewAll(): void {
    for (const dialled of this.#dialled.values()) if (dialled.links.size > 0) this.#dial(dialled);
  }

  /** Retries a new certificate that was refused. The link with the old one stays meanwhile. */
  async #renewLater(dialled: Dialled): Promise<void> {
    const { newest } = dialled;
    await sleep(this.#options.clock, dialled.backoff.nextMs(), this.#stop.signal);
    if (dialled.newest === newest && dialled.links.size > 0) this.#dial(dialled);
  }

  #ended(link: RouterLink, dialled: Dialled, reason: string): void {
    dialled.links.delete(link);
    if (link === dialled.newest && dialled.links.size > 0) void this.#renewLater(dialled).catch(() => {});
    if (link.welcome) {
      this.#down(link);
      if (this.#live.has(link.routerId)) return;
      this.#options.answers.linkDown(link.routerId, reason === endedInOrder);
      this.#options.events.routerLinkDown(describeAddress(dialled.address), link.routerId, reason);
    } else if (dialled.failure !== reason) {
      dialled.failure = reason;
      void this.#explain(dialled, reason);
    }
  }

  async #explain(dialled: Dialled, reason: string): Promise<void> {
    const { tls, clock, events } = this.#options;
    const why = await explainFailure(dialled.address, tls, reason, clock.now());
    if (dialled.failure !== reason || dialled.why === why || this.#stop.signal.aborted) return;
    dialled.why = why;
    events.routerLinkFailed(describeAddress(dialled.address), why);
  }

  #take(message: Downlink, link: RouterLink, dialled: Dialled): void {
    switch (message.$case) {
      case "welcome":
        return this.#welcomed(message.value, link, dialled);
      case "modelRulesChanged":
        return this.#takeRules(message.value);
      case "usageAck":
        return this.#options.usage.acknowledged(link.routerId, message.value.batchId);
      case "desiredState":
        return this.#desire(message.value);
      case "settled":
        return this.#options.answers.settled(link.routerId, message.value.attempts);
      case "heartbeat":
        return this.#options.usage.committedTo(message.value.ledger);
      case "routersChanged":
        return this.#hear(message.value);
      case "goodbye": // Usage goes to another router if possible. Running requests still need reports and data connections.
        return;
    }
  }

  #welcomed(welcome: Welcome, link: RouterLink, dialled: Dialled): void {
    const { address } = dialled;
    const { routerId: before = welcome.routerId } = dialled;
    delete dialled.failure;
    delete dialled.why;
    dialled.routerId = welcome.routerId;
    dialled.backoff.up();
    this.#takeRules(welcome);
    if (welcome.desiredState) this.#desire(welcome.desiredState);
    this.#options.events.routerLinkUp(describeAddress(address), welcome.routerId, link.routerVersion);
    this.#up(link);
    if (before !== welcome.routerId) this.#options.answers.replaced(before);
    if (!this.#isDraining) this.#dialData(welcome, address);
    if (welcome.routers) this.#hear(welcome.routers);
  }

  #hear({ routers }: RouterList): void {
    if (this.#options.known.hear(routers)) this.#resolving.wish();
  }

  #takeRules({ models }: Pick<Welcome, "models">): void {
    const { rules, unreadable } = readRules(models);
    for (const { model, reason } of unreadable) this.#options.events.rulesUnreadable(model, reason);
    this.#options.onRules(rules);
  }

  #desire(state: DesiredState): void {
    if (state.generation <= this.#generation) return;
    this.#generation = state.generation;
    this.#options.onDesiredState(state);
    this.reportSoon();
  }

  #up(link: RouterLink): void {
    const other = this.#live.get(link.routerId);
    if (other) {
      this.#down(other);
      void other.close(closeMsMax);
    }
    this.#live.set(link.routerId, link);
    this.#options.usage.linkUp(link);
    this.#options.answers.linkUp(link.routerId);
  }

  #dialData({ routerId, dataAddress }: Welcome, address: RouterAddress): void {
    const { hello, answers } = this.#options;
    let dataLink = this.#dataLinks.get(routerId);
    if (!dataLink) {
      const identity = { node: hello.node, bootId: hello.bootId };
      const onConnections = (connections: number) => answers.dataConnections(routerId, connections);
      dataLink = new DataLink({ ...this.#options, routerId, identity, onConnections });
      this.#dataLinks.set(routerId, dataLink);
    }
    // A router that listens on all addresses and advertises none is reached at the address of its link.
    dataLink.dial(
      dataAddress.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, isIP(address.host) === 6 ? `[${address.host}]` : address.host),
    );
  }

  /** Stops using the link for usage and reports. Running streams stay on their data connection. */
  #down(link: RouterLink): void {
    const { routerId } = link;
    if (this.#live.get(routerId) !== link) return;
    this.#live.delete(routerId);
    this.#options.usage.linkDown(routerId);
    this.#dataLinks.get(routerId)?.rest();
    for (const [id, dataLink] of this.#dataLinks) {
      if (this.#live.has(id) || dataLink.connections > 0) continue;
      this.#dataLinks.delete(id);
      void dataLink.close(0);
    }
  }
}

function stateOf(link: RouterLink | undefined): RouterState["state"] {
  if (!link) return "connecting";
  return link.isLeaving ? "leaving" : "linked";
}
