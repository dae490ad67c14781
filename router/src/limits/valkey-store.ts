/** Uses Valkey or Redis 7 as limit store. The client reconnects by itself. */
import type { Socket } from "node:net";
import { createSecureContext } from "node:tls";
import { Cluster, Redis, type RedisOptions } from "iovalkey";
import { checkPrivate } from "@weiche/shared/files/private-file.ts";
import { readForStart, StartError } from "@weiche/shared/files/start-error.ts";
import { within, type Clock } from "@weiche/shared/time/clock.ts";
import type { AccountId, RequestId } from "@weiche/shared/ids.ts";
import type { LimitStoreConfig } from "../config/config.ts";
import type { AccountLimits, LimitUse } from "./limiter.ts";
import { enterScript, renewScript, tellScript, useScript, type Script } from "./limit-scripts.ts";
import type { LimitStore, StoreDecision } from "./limit-store.ts";

const connectMsMax = 1_000;
/** After this time without an answer the connection is replaced, because the host may be gone without closing it. */
const silenceMsMax = 2_000;
const closeMsMax = 500;
/** The pause between the end of a connection and the next attempt, randomly 50 % shorter to 50 % longer. */
const reconnectMs = 300;
const slotsEveryMs = 5_000;

interface ValkeyStoreOptions {
  readonly config: LimitStoreConfig;
  /** Distinguishes this router's requests from those of other routers. */
  readonly routerId: string;
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

export class ValkeyStore implements LimitStore {
  readonly #client: Redis | Cluster;
  readonly #clock: Clock;
  readonly #prefix: string;
  /** Why there is no connection. Undefined while there is one. */
  #trouble: string | undefined = "it cannot be reached yet";

  /** Whether the connected server is no longer the primary. */
  #isLeaving = false;

  /** Connects in the background. Throws `StartError` if the files of `storeTls` cannot be used. */
  constructor({ config, routerId, clock, random }: ValkeyStoreOptions) {
    this.#clock = clock;
    // Short, because the store keeps members of up to 64 bytes in a compact form. The end of a UUIDv7 is random.
    this.#prefix = `${routerId.slice(-8)}:`;
    this.#client = connect(config, () => reconnectMs * (0.5 + random()));
    this.#client.on("error", (error: Error) => (this.#trouble = reasonOf(error)));
    this.#client.on("ready", () => {
      this.#trouble = undefined;
      this.#isLeaving = false;
    });
  }

  async enter(account: AccountId, request: RequestId, limits: AccountLimits): Promise<StoreDecision> {
    const { perMinute, parallel } = limits;
    const waitUs = await this.#run(enterScript, account, () => [this.#prefix + request, perMinute, parallel]);
    if (waitUs === 0) return { admitted: true };
    if (waitUs === -1) return { admitted: false, limit: "parallel" };
    return { admitted: false, limit: "minute", freeInMs: Math.ceil((waitUs as number) / 1_000) };
  }

  async tell(
    account: AccountId,
    request: RequestId,
    { perMinute, parallel }: AccountLimits,
    { durationsMs, isRetry }: Parameters<LimitStore["tell"]>[3],
  ): Promise<number | undefined> {
    const durationsUs = durationsMs.map((duration) => Math.round(duration * 1_000));
    const args = [this.#prefix + request, perMinute, parallel, isRetry ? 1 : 0, ...durationsUs];
    const seconds = (await this.#run(tellScript, account, () => args)) as number;
    return seconds === 0 ? undefined : seconds * 1_000;
  }

  async leave(account: AccountId, request: RequestId): Promise<unknown> {
    return await this.#told(this.#commands.zrem(keysOf(account)[1], this.#prefix + request));
  }

  async renew(account: AccountId, requests: () => Iterable<readonly [RequestId, boolean]>): Promise<unknown> {
    return await this.#run(renewScript, account, () => {
      const [held, asking]: [string[], string[]] = [[], []];
      for (const [request, isHeld] of requests()) (isHeld ? held : asking).push(this.#prefix + request);
      return [this.#prefix, held.length, ...held, ...asking];
    });
  }

  async use(account: AccountId): Promise<LimitUse> {
    const [lastMinute, parallel] = (await this.#run(useScript, account, () => [])) as [number, number];
    return { lastMinute, parallel };
  }

  onLost(callback: (why: Error) => void): void {
    const lost = () => callback(new Error(this.#trouble ?? "the connection was lost"));
    this.#client.on(this.#client instanceof Cluster ? "-node" : "close", lost);
  }

  /** Sends the waiting commands, then closes the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    const said = this.#client.quit().catch(() => {});
    await within(this.#clock, closeMsMax, said);
    this.#client.disconnect();
  }

  /** The client. It sends all commands of one turn of the event loop as one write, because system calls cost the most. */
  get #commands(): Redis | Cluster {
    // A cluster's client has one connection per server and no stream of its own.
    const stream = this.#client instanceof Cluster ? undefined : (this.#client.stream as Socket | undefined);
    if (stream && stream.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    return this.#client;
  }

  /** `args` is called for each sending, because requests may come and leave before a script is sent again. */
  async #run(script: Script, account: AccountId, args: () => (string | number)[]): Promise<unknown> {
    const keys = keysOf(account);
    try {
      return await this.#commands.evalsha(script.sha, keys.length, ...keys, ...args());
    } catch (error) {
      // A newly started server, or a replica that became the primary, may not know the script.
      if (!/^NOSCRIPT/.test((error as Error).message)) return await this.#told(Promise.reject(error as Error));
      return await this.#told(this.#commands.eval(script.lua, keys.length, ...keys, ...args()));
    }
  }

  /** Replaces errors by texts for operators, without the commands, which may contain a password. */
  async #told<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (/^READONLY/.test((error as Error).message)) this.#leave();
      throw new Error(reasonOf(error as Error, this.#trouble));
    }
  }

  /** Reconnects, because the name or the Sentinels now lead to another server. A cluster's client does so by itself. */
  #leave(): void {
    if (this.#isLeaving || this.#client instanceof Cluster) return;
    this.#isLeaving = true;
    this.#client.disconnect(true);
  }
}

/** The hash tag in braces keeps all keys of an account on one server of a cluster. */
function keysOf(account: AccountId): [times: string, live: string, begun: string, told: string] {
  const keyOf = (what: string) => `weiche:{${account}}:${what}`;
  return [keyOf("times"), keyOf("live"), keyOf("begun"), keyOf("told")];
}

function connect(config: LimitStoreConfig, retryMs: () => number): Redis | Cluster {
  const { kind, addresses, user, password, database, primary } = config;
  const settings: RedisOptions = {
    connectionName: "weiche-router",
    ...(user !== undefined && { username: user }),
    ...(password !== undefined && { password }),
    ...(config.tls && { tls: tlsOf(config) }),
    family: 0,
    familyFallback: { enabled: false },
    connectTimeout: connectMsMax,
    socketTimeout: silenceMsMax,
    disconnectTimeout: 100,
    // A command that cannot be sent fails at once instead of being queued, so that the router decides alone.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  };
  if (kind === "cluster")
    return new Cluster([...addresses], {
      redisOptions: settings,
      enableOfflineQueue: false,
      clusterRetryStrategy: retryMs,
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      slotsRefreshInterval: slotsEveryMs,
    });
  const single = { ...settings, db: database, enableOfflineQueue: false, retryStrategy: retryMs };
  if (kind === "server") return new Redis({ ...single, ...addresses[0]! });
  return new Redis({
    ...single,
    sentinels: [...addresses],
    name: primary!,
    sentinelRetryStrategy: retryMs,
    sentinelCommandTimeout: connectMsMax,
    ...(config.tls && { sentinelTLS: single.tls!, enableTLSForSentinelMode: true }),
  });
}

function tlsOf({ tlsFiles: { ca, cert, key } }: LimitStoreConfig) {
  if (key !== undefined) checkPrivate(key, "a private key");
  const material = {
    ...(ca !== undefined && { ca: readForStart(ca) }),
    ...(cert !== undefined && key !== undefined && { cert: readForStart(cert), key: readForStart(key) }),
  };
  try {
    createSecureContext(material);
  } catch (error) {
    throw new StartError(`limits.storeTls: the files cannot be used: ${(error as Error).message}`);
  }
  // After a TLS alert Node.js emits an error and leaves the connection open, so that its end emits a second error. The
  // client listens for one error only. With a signal, the connection has a listener for every error.
  return { ...material, signal: new AbortController().signal };
}

/** Returns the reason for operators. `trouble` replaces a message that only states that there is no connection. */
function reasonOf(error: Error & { readonly lastNodeError?: Error }, trouble = "the connection was lost"): string {
  const { message, lastNodeError } = error;
  if (lastNodeError) return lastNodeError.message;
  return /enableOfflineQueue|Connection is closed|max retries per request|aborted/.test(message) ? trouble : message;
}
