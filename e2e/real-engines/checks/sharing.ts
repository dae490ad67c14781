/** Checks that several accounts on one engine do not affect each other. */
import { setTimeout as sleep } from "node:timers/promises";
import { costlySchemas, record, type CostlySchema } from "@weiche/node-agent/test/exchange/costly-schemas.ts";
import { expect, expectEqual, type Check } from "../check.ts";
import { places } from "../engine-kinds.ts";
import type { Account } from "../../cluster/cluster.ts";
import { canary, first, type Service } from "../service.ts";
import { counting, whole } from "./answers.ts";
import { longAnswer } from "./long-answer.ts";
import { served } from "./served.ts";

/** The longest gap in a stream that another client's schema may cause, on a machine without other work. */
const gapMsMax = 250;
/** Other work of the machine also delays streams. A gap may be this many times the longest gap of a stream alone. */
const gapsAloneMax = 3;
/** If an attack has no answer by then, it has stopped the engine. */
const attackMsMax = 60_000;
/** A costly schema delays streams each time, other work does not. */
const triesMax = 3;
/** How long a stream alone is measured before each attack. */
const aloneMsMin = 1_000;
const crowd = 50;
/** Schemas that are costly for one kind of engine, which refuses them. The last is refused unread for its many values. */
const attacks: readonly CostlySchema[] = [
  ...costlySchemas,
  { name: "a pattern that counts to 2,000", schema: { type: "string", pattern: "^(ab|cd){1,2000}$" } },
  { name: "300 patterns that count to 128", schema: record(300, { type: "string", pattern: "^(ab|cd){1,128}$" }) },
  { name: "1,000 addresses", schema: record(1_000, { type: "string", format: "ipv6" }) },
  { name: "1,000 numbers with bounds", schema: record(1_000, { type: "integer", minimum: -98_765, maximum: 123_456 }) },
  { name: "50,000 numbers in an enum", schema: { enum: Array.from({ length: 50_000 }, (_, at) => at) } },
];

export const sharing: readonly Check[] = [
  {
    name: "a prompt of another account leaves no trace in cached_tokens",
    async run(service) {
      const secret = `${"My password is a long sentence that nobody else knows. ".repeat(8)} ${canary}`;
      const [owner, stranger] = [await service.account(), await service.account()];
      const ask = async (account: Account) =>
        whole(await service.stream(secret, { max_tokens: 5 }, { account })).usage!;
      await ask(owner);
      await service.idle();
      const { prompt_tokens_details: details } = await ask(stranger);
      const cached = details?.cached_tokens ?? 0;
      expectEqual(cached, 0, "cached_tokens of a prompt that this account sends for the first time");
    },
  },
  {
    name: `${crowd} at once on ${places} places: all are answered`,
    boundMs: 180_000,
    async run(service) {
      // An account may have 20 parallel requests.
      const accounts = await Promise.all(Array.from({ length: 5 }, () => service.account()));
      const sinceMs = performance.now();
      const asked = Array.from({ length: crowd }, (_, at) =>
        service.stream(counting, { max_tokens: 30 }, { account: accounts[at % accounts.length]! }),
      );
      const others = (await Promise.all(asked)).filter(({ ending }) => ending !== "whole");
      const seen = `${others.length} others, such as ${JSON.stringify(others[0]?.error)}`;
      expect(others.length === 0, `${crowd} whole answers`, seen);
      return `all within ${Math.round(performance.now() - sinceMs)} ms`;
    },
  },
  {
    name: `costly schemas: refused or answered, nobody else waits longer than ${gapMsMax} ms`,
    boundMs: 600_000,
    async run(service) {
      const attacker = await service.account();
      const gaps: string[] = [];
      const wrong: string[] = [];
      for (const attack of attacks) {
        let tried = await tryAttack(service, attacker, attack);
        for (let tries = 1; !tried.isServed && tried.isSlow && tries < triesMax; tries++)
          tried = await tryAttack(service, attacker, attack);
        gaps.push(tried.said);
        if (!tried.isServed) wrong.push(tried.said);
      }
      expect(
        wrong.length === 0,
        `200 or 400, and gaps up to ${gapMsMax} ms, or ${gapsAloneMax} times a gap alone`,
        wrong.join("; "),
      );
      return gaps.join("; ");
    },
  },
];

/** Sends one costly schema while another client reads a stream. `isSlow`: the only fault is a gap in that stream. */
async function tryAttack(service: Service, account: Account, { name, schema }: CostlySchema) {
  const pid = service.pidOf(first)!;
  const reader = await service.account();
  const aloneMs = await longestGapMs(service, reader, () => sleep(aloneMsMin));
  const format = { type: "json_schema", json_schema: { name: "answer", schema } };
  const signal = AbortSignal.timeout(attackMsMax);
  let status = 0;
  const gapMs = await longestGapMs(service, reader, async () => {
    const asked = { response_format: format, max_tokens: 20 };
    ({ status } = await service.chat("Hi", asked, { account, signal }));
  });
  const isAnswered = (status === 400 || status === 200) && gapMs < Infinity && service.pidOf(first) === pid;
  if (status === 0) await replaceEngine(service, pid);
  const gap = gapMs === Infinity ? "a stream cut" : `${gapMs} ms (alone ${aloneMs} ms)`;
  return {
    said: `${name}: ${status === 0 ? "no answer" : status}, ${gap}`,
    isServed: isAnswered && gapMs <= Math.max(gapMsMax, gapsAloneMax * aloneMs),
    isSlow: isAnswered,
  };
}

/** Kills an engine that does not answer after an attack, so that later checks get a new one. */
async function replaceEngine(service: Service, pid: number): Promise<void> {
  const answer = await service.chat("Hi", { max_tokens: 5 }, { signal: AbortSignal.timeout(attackMsMax) });
  if (answer.ending === "whole") return;
  if (service.pidOf(first) === pid) process.kill(pid, "SIGKILL");
  await served(service);
}

/** Returns the longest gap in a victim's streams during an attack, or Infinity if a stream was cut or refused. */
async function longestGapMs(service: Service, account: Account, attack: () => Promise<void>): Promise<number> {
  let longestMs = 0;
  let victim = longAnswer(service, {}, { account });
  await victim.begun;
  const attacked = attack();
  while ((await Promise.race([victim.answer, attacked])) !== undefined) {
    // This stream has ended, so another one follows.
    const { ending, longestGapMs: gapMs } = await victim.answer;
    longestMs = Math.max(longestMs, ending === "whole" ? gapMs : Infinity);
    victim = longAnswer(service, {}, { account });
    await Promise.race([victim.begun.catch(() => sleep(500)), attacked]);
  }
  victim.leave();
  const { longestGapMs: lastMs } = await victim.answer;
  return Math.max(longestMs, lastMs);
}
