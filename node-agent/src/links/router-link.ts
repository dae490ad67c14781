/**
 * One link to one router, from dialling to its end. It sends the hello, a report each second and on demand, and usage.
 * A new object replaces a lost link.
 */
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext } from "node:tls";
import { credentials, status, type ChannelCredentials, type ChannelOptions } from "@grpc/grpc-js";
import type { Welcome } from "@weiche/proto/weiche/node/v1/node_control.ts";
import { every, type Clock, type Timer } from "@weiche/shared/time/clock.ts";
import { linkKeepAlive, linkSilenceMsMax, Silence } from "@weiche/shared/time/silence.ts";
import type { TlsFiles } from "@weiche/shared/http/tls-files.ts";
import type { UsageRecord } from "@weiche/shared/usage-record.ts";
import type { UsageChannel } from "../outbox/usage-channel.ts";
import { loadReport, reportEveryMs, type NodeLoad, type Told } from "./load.ts";
import { encodeRecord, LinkClient } from "./router-link-codec.ts";
import type { Downlink, LinkCall, NodeHello, Uplink } from "./router-link-codec.ts";

/** One address of a router. */
export interface RouterAddress {
  /** Name or address as configured. The router's certificate must contain it. */
  readonly host: string;
  readonly ip: string;
  readonly port: number;
  /** The id of the router there, as another router announced it. Undefined if the address is configured. */
  readonly routerId?: string;
}

export interface RouterLinkOptions {
  readonly clock: Clock;
  /** If undefined, no TLS, to loopback. */
  readonly tls?: TlsFiles;
  readonly hello: NodeHello;
  readonly load: () => NodeLoad;
}

/** The value of `ended` if nothing went wrong. */
export const endedInOrder = "ended in order";

const versionCharactersMax = 64;
/** The time limit from dialling to the router's welcome, as for data connections. */
const welcomeMsMax = 10_000;
/** The most messages that wait to be sent. Late reports are useless, and unacknowledged usage is sent again. */
const unsentMax = 8;

/** Heartbeats show that the router is alive. */
const channelOptions: ChannelOptions = {
  ...linkKeepAlive,
  "grpc.max_receive_message_length": 4 << 20,
  "grpc.max_send_message_length": 4 << 20,
  "grpc.enable_channelz": 0,
  "grpc.enable_http_proxy": 0,
  "grpc.use_local_subchannel_pool": 1,
};

export class RouterLink implements UsageChannel {
  /** Resolves with the reason when the link has ended. It never rejects. */
  readonly ended: Promise<string>;
  readonly #options: RouterLinkOptions;
  readonly #call: LinkCall;
  readonly #client: { close(): void };
  readonly #welcomeTimer: Timer;
  readonly #silence: Silence;
  #reportTimer: Timer | undefined;
  welcome: Welcome | undefined;
  /** The router has said goodbye and lets running requests end. */
  isLeaving = false;
  #sequence = 0n;
  #told: Told = {};

  constructor(address: RouterAddress, options: RouterLinkOptions, take: (message: Downlink, link: RouterLink) => void) {
    this.#options = options;
    const { host, ip, port } = address;
    const target = isIP(ip) === 6 ? `ipv6:[${ip}]:${port}` : `ipv4:${ip}:${port}`;
    const client = new LinkClient(target, credentialsFor(host, options.tls), {
      ...channelOptions,
      "grpc.default_authority": `${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
      // Node.js refuses addresses as server names. The certificate is checked against `host` in any case.
      "grpc.ssl_target_name_override": isIP(host) ? "router" : host,
    });
    this.#client = client;
    this.#call = client.link();
    let givenUp: string | undefined;
    const giveUp = (reason: string) => () => {
      givenUp = reason;
      this.#call.cancel();
    };
    this.#welcomeTimer = options.clock.after(welcomeMsMax, giveUp(`no welcome within ${welcomeMsMax} ms`));
    this.#silence = new Silence(options.clock, linkSilenceMsMax, giveUp("the router is silent"));
    this.#call.on("data", ({ message, mistake }) => {
      if (mistake) giveUp(`the router sent an invalid message: ${mistake}`)();
      else this.#receive(message, take);
    });
    this.#call.on("error", () => {}); // `status` follows
    this.ended = new Promise((resolve) =>
      this.#call.on("status", ({ code, details }) => {
        this.#stop();
        if (givenUp) return resolve(givenUp);
        resolve(code === status.OK ? endedInOrder : `${status[code]}: ${details.replace(/ Resolution note: $/, "")}`);
      }),
    );
    this.#say({ $case: "hello", value: options.hello });
  }

  get routerId(): string {
    return this.welcome?.routerId ?? "";
  }

  /** The version that the router reports, cut to a plausible length. */
  get routerVersion(): string | undefined {
    return this.welcome?.routerVersion?.slice(0, versionCharactersMax);
  }

  report(): void {
    if (!this.welcome || this.#call.writableLength > unsentMax) return;
    const load = this.#options.load();
    this.#say({ $case: "loadReport", value: loadReport(load, this.routerId, ++this.#sequence, this.#told) });
    this.#told = load;
  }

  send(batchId: bigint, records: readonly UsageRecord[]): void {
    if (this.#call.writableLength > unsentMax) return;
    this.#say({ $case: "usageBatch", value: { batchId, records: records.map(encodeRecord) } });
  }

  /** Ends the link in order, or at once if the router has not sent its welcome or does not answer in time. */
  async close(deadlineMs: number): Promise<void> {
    const deadline = this.#options.clock.after(this.welcome ? deadlineMs : 0, () => this.#call.cancel());
    this.#call.end();
    await this.ended;
    deadline.cancel();
  }

  /** `message` is undefined if it is from a later version. */
  #receive(message: Downlink | undefined, take: (message: Downlink, link: RouterLink) => void): void {
    if (message?.$case === "welcome") {
      if (this.welcome) return;
      this.#welcomeTimer.cancel();
      this.#silence.heard();
      this.welcome = message.value;
      take(message, this);
      this.report();
      this.#reportTimer = every(this.#options.clock, reportEveryMs, () => this.report());
    } else if (message && this.welcome) {
      if (message.$case === "heartbeat") this.#silence.heard();
      this.isLeaving ||= message.$case === "goodbye";
      take(message, this);
    }
  }

  #say(message: Uplink): void {
    if (this.#call.writable) this.#call.write({ message });
  }

  #stop(): void {
    this.#welcomeTimer.cancel();
    this.#silence.cancel();
    this.#reportTimer?.cancel();
    this.#client.close();
  }
}

function credentialsFor(host: string, tls: TlsFiles | undefined): ChannelCredentials {
  if (!tls) return credentials.createInsecure();
  return credentials.createFromSecureContext(createSecureContext(tls.current), {
    checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate),
  });
}
