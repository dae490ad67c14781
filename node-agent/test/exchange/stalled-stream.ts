/** A chat in the words of vLLM, with running usage, whose engine stalls in the middle. */
import type { SimStream } from "@weiche/shared/testing/sim-stream.ts";
import { Rig, type RigOptions } from "./ingress-rig.ts";
import { delta, done, saying, usageEvent, usageOf } from "./scripted-engine.ts";

export const promptTokens = 7;

export function chunk(completion: number, value: object, finish: string | null = null): string {
  return delta(value, finish, { usage: usageOf(promptTokens, completion) });
}

export const opening = chunk(0, { role: "assistant", content: "" });
export const word = (n: number) => chunk(n, { content: `w${n} ` });
export const closing = (n: number) => chunk(n, {}, "stop") + usageEvent(promptTokens, n) + done;
/** A complete stream of two tokens. */
export const whole = opening + word(1) + closing(2);

/** Opens a rig whose engine sends this many words, and then nothing more. */
export function openStalled(words: number, options?: RigOptions): Promise<Rig> {
  const said = Array.from({ length: words }, (_, n) => word(n + 1));
  return Rig.open(saying(opening + said.join("")), options);
}

/** Resolves when the client has this many events. */
export async function received(stream: SimStream, events: number): Promise<void> {
  let seen = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.on("data", (bytes: Buffer) => {
    seen += bytes.toString().split("\n\n").length - 1;
    if (seen >= events) resolve();
  });
  await promise;
}
