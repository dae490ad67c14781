/** Work that takes much: few of it at once, some in line in the order they came, the rest refused at once. */
export interface FewAtOnce {
  /** Throws what `refusal` makes if the line is full. */
  run<T>(work: () => Promise<T>): Promise<T>;
}

export function fewAtOnce(atOnceMax: number, waitingMax: number, refusal: () => Error): FewAtOnce {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    async run(work) {
      if (running < atOnceMax) running++;
      else if (waiting.length < waitingMax) await new Promise<void>((resolve) => waiting.push(resolve));
      else throw refusal();
      try {
        return await work();
      } finally {
        // Who ends hands the place on, so that nobody who comes just now takes it.
        const next = waiting.shift();
        if (next) next();
        else running--;
      }
    },
  };
}
