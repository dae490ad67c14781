/**
 * Runs a real Prometheus that scrapes a router and, through it, its nodes. It evaluates our rules with short waiting
 * times.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@weiche/node-agent/src/engines/launchers/loopback-ports.ts";
import { parse, stringify } from "yaml";
import { until } from "../cluster/cluster.ts";
import { promtool } from "../cluster/promtool.ts";

interface PrometheusOptions {
  /** The router's `listen.ops`. */
  readonly router: string;
  /** The router's data directory, for which `requireToken` was called. */
  readonly dataDir: string;
  /** Seconds between two scrapes. */
  readonly scrapeSeconds: number;
  /** Changes the text of rules.yml, such as the waiting times of alerts. */
  readonly hasten: (rules: string) => string;
  /** Further targets of the job `weiche-nodes`: node names by address. */
  readonly nodes?: Readonly<Record<string, string>>;
}

interface RuleState {
  readonly name: string;
  readonly type: "alerting" | "recording";
  readonly state: "inactive" | "pending" | "firing";
  readonly health: "ok" | "err" | "unknown";
  readonly lastError?: string;
}

/** Alerts about durations, which fire if the test machine is busy. */
const ofTimes = ["WeicheEventLoopSlow", "WeicheFirstByteSlow", "WeicheDatabaseSlow"];

/** For `prepare` of a cluster: writes a token. Returns the settings that require it. */
export function requireToken(dataDir: string): Promise<{ readonly ops: { readonly tokenFile: string } }> {
  writeFileSync(tokenFileOf(dataDir), "0123456789abcdef\n", { mode: 0o600 });
  return Promise.resolve({ ops: { tokenFile: tokenFileOf(dataDir) } });
}

const tokenFileOf = (dataDir: string) => join(dataDir, "ops-token");

export class Prometheus implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "weiche-prometheus-"));
  readonly #child: ChildProcess;
  readonly #url: string;

  private constructor(address: string, options: PrometheusOptions) {
    writeConfig(this.#folder, options);
    const flags = {
      "config.file": join(this.#folder, "prometheus.yml"),
      "storage.tsdb.path": join(this.#folder, "data"),
      "web.listen-address": address,
    };
    const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    this.#child = spawn("prometheus", args, { stdio: "ignore" });
    this.#url = `http://${address}`;
  }

  /** Throws if Prometheus is missing, and names the package to install. */
  static async start(options: PrometheusOptions): Promise<Prometheus> {
    promtool(["--version"]);
    const prometheus = new Prometheus(`127.0.0.1:${await freePort()}`, options);
    const isReady = () =>
      fetch(`${prometheus.#url}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    await until("Prometheus to be ready", isReady);
    return prometheus;
  }

  /** Returns the current values of an expression. Throws if it cannot be evaluated. */
  async values(expression: string): Promise<readonly number[]> {
    const asked = await fetch(`${this.#url}/api/v1/query?${new URLSearchParams({ query: expression }).toString()}`);
    const answer = (await asked.json()) as {
      readonly error?: string;
      readonly data?: { readonly result: readonly { readonly value: readonly [number, string] }[] };
    };
    if (!answer.data) throw new Error(`${expression}: ${answer.error}`);
    return answer.data.result.map(({ value }) => Number(value[1]));
  }

  /** Returns the current number of series of an expression. */
  async count(expression: string): Promise<number> {
    return (await this.values(expression)).length;
  }

  async rules(): Promise<readonly RuleState[]> {
    const { data } = (await (await fetch(`${this.#url}/api/v1/rules`)).json()) as {
      data: { groups: readonly { rules: readonly RuleState[] }[] };
    };
    return data.groups.flatMap((group) => group.rules);
  }

  /** Returns the alerts that fire, without alerts about durations, in alphabetical order. */
  async firing(): Promise<readonly string[]> {
    const names = (await this.rules()).filter(({ state }) => state === "firing").map(({ name }) => name);
    return names.filter((name) => !ofTimes.includes(name)).toSorted((a, b) => (a < b ? -1 : 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
    rmSync(this.#folder, { recursive: true });
  }
}

interface ShippedConfig {
  readonly rule_files: readonly string[];
  readonly scrape_configs: readonly { readonly job_name: string }[];
}

/** Writes the shipped configuration and rules, with this router, its token, and short times. */
function writeConfig(folder: string, { router, dataDir, scrapeSeconds, hasten, nodes = {} }: PrometheusOptions): void {
  const shipped = (file: string) => readFileSync(join(import.meta.dirname, "../../deploy/prometheus", file), "utf8");
  const text = shipped("prometheus.yml")
    .replaceAll("router-1.example:9464", router)
    .replaceAll("/etc/prometheus/weiche-token", tokenFileOf(dataDir));
  const { rule_files: ruleFiles, scrape_configs: jobs } = parse(text) as ShippedConfig;
  writeFileSync(join(folder, ruleFiles[0]!), hasten(shipped("rules.yml")));
  const every = `${scrapeSeconds}s`;
  const more = Object.entries(nodes).map(([address, node]) => ({
    targets: [address],
    labels: { node, instance: node },
  }));
  const config = {
    global: { scrape_interval: every, scrape_timeout: every, evaluation_interval: "1s" },
    rule_files: ruleFiles,
    scrape_configs: jobs.map((job) =>
      job.job_name === "weiche-nodes" ? { ...hastenList(job), static_configs: more } : job,
    ),
  };
  writeFileSync(join(folder, "prometheus.yml"), stringify(config));
}

/** Asks for the list of nodes each second. */
function hastenList(job: object): object {
  const { http_sd_configs: lists } = job as { readonly http_sd_configs: readonly object[] };
  return { ...job, http_sd_configs: lists.map((list) => ({ ...list, refresh_interval: "1s" })) };
}
