/** Reads a node's answer as a router receives it. */
import type { UpstreamResponse } from "@weiche/router/src/nodes/upstream.ts";

/** Reads the answer to its end, also if it fails. `first` resolves with the first piece. */
export function readAnswer({ body }: UpstreamResponse): {
  readonly first: Promise<Buffer>;
  readonly whole: Promise<Buffer>;
} {
  const first = Promise.withResolvers<Buffer>();
  const whole = Promise.withResolvers<Buffer>();
  const pieces: Buffer[] = [];
  body.readInto({
    take(piece) {
      pieces.push(piece);
      first.resolve(piece);
    },
    end: () => whole.resolve(Buffer.concat(pieces)),
  });
  return { first: first.promise, whole: whole.promise };
}

export async function textOf(answer: UpstreamResponse): Promise<string> {
  return String(await readAnswer(answer).whole);
}
