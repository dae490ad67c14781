/** Checks answers while models are switched and programs die. */
import { until } from "../../cluster/cluster.ts";
import { dumpUsage } from "../../cluster/usage-dump.ts";
import { expect, expectEqual, type Check } from "../check.ts";
import { first, second, type Service } from "../service.ts";
import { whole, who } from "./answers.ts";
import { longAnswer } from "./long-answer.ts";
import { served } from "./served.ts";

export const lives: readonly Check[] = [
  {
    name: "a switch to the other model lets a running stream end",
    boundMs: 240_000,
    async run(service) {
      await served(service);
      const running = longAnswer(service, { max_tokens: 1_000 });
      await running.begun;
      const sinceMs = performance.now();
      const other = service.chat(who, { model: second });
      const { usage } = whole(await running.answer);
      const drainedMs = performance.now() - sinceMs;
      whole(await other);
      const switchedMs = Math.round(performance.now() - sinceMs - drainedMs);
      expect(service.pidOf(second) !== undefined, "the second model's engine");
      whole(await service.chat(who));
      return `the stream ended with ${usage!.completion_tokens} tokens; then ${switchedMs} ms to the other model's answer`;
    },
  },
  {
    name: "kill -9 of the engine in a stream: an error event, no cost, and a new engine",
    boundMs: 120_000,
    async run(service) {
      const account = await service.account();
      await served(service);
      const running = longAnswer(service, {}, { account });
      await running.begun;
      const pid = service.pidOf(first)!;
      process.kill(pid, "SIGKILL");
      const { ending, error, id } = await running.answer;
      expect(ending === "error" && error?.code === "engine_died", "an error event engine_died", { ending, error });
      await until("the record", async () => (await recordOf(service, id)) !== undefined);
      const { outcome, credits } = (await recordOf(service, id))!;
      expect(outcome === "broken" && credits === 0n, "a broken answer that costs nothing", `${outcome}, ${credits}`);
      const sinceMs = performance.now();
      await served(service);
      expect(service.pidOf(first) !== pid, "another process");
      return `served again ${Math.round(performance.now() - sinceMs)} ms later`;
    },
  },
  {
    name: "kill -9 of the agent: the next one takes the same engine over",
    boundMs: 120_000,
    async run(service) {
      await served(service);
      const pid = service.pidOf(first);
      await service.killAgent();
      return `served again ${await takenOver(service, pid)} ms later`;
    },
  },
  {
    name: "SIGTERM of the agent: a running stream ends, the engine stays",
    boundMs: 120_000,
    async run(service) {
      await served(service);
      const pid = service.pidOf(first);
      // An agent of the campaign gives answers 10 s.
      const running = longAnswer(service, { max_tokens: 150 });
      await running.begun;
      const stopped = service.stopAgent();
      const answer = await running.answer;
      const code = await stopped;
      // Before anything is judged, because later checks need an agent.
      await takenOver(service, pid);
      const { usage } = whole(answer);
      expectEqual(code, 0, "the agent's exit code");
      return `the stream ended with ${usage!.completion_tokens} tokens`;
    },
  },
  {
    name: "an engine that hangs is noticed and replaced",
    isLong: true,
    boundMs: 300_000,
    async run(service) {
      await served(service);
      const running = longAnswer(service);
      await running.begun;
      const pid = service.pidOf(first)!;
      const sinceMs = performance.now();
      process.kill(pid, "SIGSTOP");
      const { ending, error } = await running.answer;
      const noticedMs = performance.now() - sinceMs;
      expect(ending === "error", "an error event", { ending, error });
      await served(service, 120_000);
      expect(service.pidOf(first) !== pid, "another process");
      return `noticed after ${Math.round(noticedMs / 1_000)} s`;
    },
  },
];

/** Starts the next agent. Resolves with the milliseconds until it serves with the same engine. */
async function takenOver(service: Service, pid: number | undefined): Promise<number> {
  const sinceMs = performance.now();
  await service.startAgent();
  await served(service);
  expectEqual(service.pidOf(first), pid, "the engine's process");
  return Math.round(performance.now() - sinceMs);
}

async function recordOf({ cluster }: Service, id: string | undefined) {
  return (await dumpUsage(cluster)).find(({ requestId }) => requestId === id);
}
