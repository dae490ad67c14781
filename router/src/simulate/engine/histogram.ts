/** Counts times in classes that are one percent wide, so that a million times take a few kilobytes. */
const firstMs = 1;
const factor = Math.log(1.01);
const classes = 1_900;

export class Histogram {
  count = 0;
  sumMs = 0;
  maxMs = 0;
  readonly #counts = new Uint32Array(classes);

  add(ms: number): void {
    this.count++;
    this.sumMs += ms;
    if (ms > this.maxMs) this.maxMs = ms;
    this.#counts[ms < firstMs ? 0 : Math.min(classes - 1, 1 + Math.floor(Math.log(ms / firstMs) / factor))]!++;
  }

  addAll(other: Histogram): void {
    this.count += other.count;
    this.sumMs += other.sumMs;
    this.maxMs = Math.max(this.maxMs, other.maxMs);
    for (let index = 0; index < classes; index++) this.#counts[index]! += other.#counts[index]!;
  }

  get meanMs(): number {
    return this.count === 0 ? 0 : this.sumMs / this.count;
  }

  /** Returns the time that this share of all times does not exceed, to half a percent. 0 below a millisecond. */
  quantileMs(share: number): number {
    const wanted = Math.ceil(share * this.count);
    let seen = 0;
    for (let index = 0; index < classes; index++) {
      seen += this.#counts[index]!;
      if (seen < wanted || seen === 0) continue;
      return index === 0 ? 0 : Math.min(this.maxMs, firstMs * Math.exp((index - 0.5) * factor));
    }
    return 0;
  }
}
