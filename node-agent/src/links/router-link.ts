/**
 * One link to one router, from dialling to its end: says hello, reports each second and when told to, and sends usage.
 * A lost link is replaced by a new object.
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
  /** Name or address as configured; the router's certificate must say it. */
  readonly host: string;
  readonly ip: string;
  readonly port: number;
  /** The router that is there, as another one says. Absent: it is configured. */
  readonly routerId?: string;
}

export interface RouterLinkParts {
  readonly clock: Clock;
  /** Absent: no TLS, to loopback. */
  readonly tls?: TlsFiles;
  readonly hello: NodeHello;
  readonly load: () => NodeLoad;
}

/** Value of `ended` if nothing went wrong. */
export const endedInOrder = "ended in order";

const versionCharactersMax = 64;
/** Time limit from dialling to the router's welcome, as for data connections. */
const welcomeMsMax = 10_000;
/** Most messages that wait to be sent: late reports are useless, and unacknowledged usage is sent again. */
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
  /** Resolves with the reason when the link has ended; it never rejects. */
  readonly ended: Promise<string>;
  readonly #parts: RouterLinkParts;
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

  constructor(address: RouterAddress, parts: RouterLinkParts, take: (message: Downlink, link: RouterLink) => void) {
    this.#parts = parts;
    const { host, ip, port } = address;
    const target = isIP(ip) === 6 ? `ipv6:[${ip}]:${port}` : `ipv4:${ip}:${port}`;
    const client = new LinkClient(target, credentialsFor(host, parts.tls), {
      ...channelOptions,
      "grpc.default_authority": `${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
      // Node refuses addresses as server names; the certificate is checked against `host` in any case.
      "grpc.ssl_target_name_override": isIP(host) ? "router" : host,
    });
    this.#client = client;
    this.#call = client.link();
    let givenUp: string | undefined;
    const giveUp = (reason: string) => () => {
      givenUp = reason;
      this.#call.cancel();
    };
    this.#welcomeTimer = parts.clock.after(welcomeMsMax, giveUp(`no welcome within ${welcomeMsMax} ms`));
    this.#silence = new Silence(parts.clock, linkSilenceMsMax, giveUp("the router is silent"));
    this.#call.on("data", ({ message, mistake }) => {
      if (mistake) giveUp(`the router sent what no router may send: ${mistake}`)();
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
    this.#say({ $case: "hello", value: parts.hello });
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
    const load = this.#parts.load();
    this.#say({ $case: "loadReport", value: loadReport(load, this.routerId, ++this.#sequence, this.#told) });
    this.#told = load;
  }

  send(batchId: bigint, records: readonly UsageRecord[]): void {
    if (this.#call.writableLength > unsentMax) return;
    this.#say({ $case: "usageBatch", value: { batchId, records: records.map(encodeRecord) } });
  }

  /** Ends the link in order, or at once if the router has not said welcome or does not answer in time. */
  async close(deadlineMs: number): Promise<void> {
    const deadline = this.#parts.clock.after(this.welcome ? deadlineMs : 0, () => this.#call.cancel());
    this.#call.end();
    await this.ended;
    deadline.cancel();
  }

  /** `message` is undefined if it is of a later version. */
  #receive(message: Downlink | undefined, take: (message: Downlink, link: RouterLink) => void): void {
    if (message?.$case === "welcome") {
      if (this.welcome) return;
      this.#welcomeTimer.cancel();
      this.#silence.heard();
      this.welcome = message.value;
      take(message, this);
      this.report();
      this.#reportTimer = every(this.#parts.clock, reportEveryMs, () => this.report());
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
