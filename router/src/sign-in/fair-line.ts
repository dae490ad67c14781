/** A queue with one line per name. Lines take turns, so that a long line does not delay the others. */
export class FairLine<T> {
  /** Lines in the order of their turns. No line is empty. */
  readonly #lines = new Map<string, T[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(name: string, item: T): void {
    const line = this.#lines.get(name);
    if (line) line.push(item);
    else this.#lines.set(name, [item]);
    this.#size++;
  }

  take(): T | undefined {
    for (const [name, line] of this.#lines) {
      const item = line.shift()!;
      this.#lines.delete(name);
      if (line.length > 0) this.#lines.set(name, line);
      this.#size--;
      return item;
    }
    return undefined;
  }

  remove(name: string, item: T): boolean {
    const line = this.#lines.get(name);
    const place = line?.indexOf(item) ?? -1;
    if (place < 0) return false;
    line!.splice(place, 1);
    if (line!.length === 0) this.#lines.delete(name);
    this.#size--;
    return true;
  }

  /** Removes the last item of the longest line, if this line is longer than the line of `name` with one more item. */
  takeExcess(name: string): T | undefined {
    let longest: readonly [string, T[]] | undefined;
    for (const entry of this.#lines) if (entry[1].length > (longest?.[1].length ?? 0)) longest = entry;
    if (!longest || longest[1].length <= (this.#lines.get(name)?.length ?? 0) + 1) return undefined;
    const item = longest[1].at(-1)!;
    this.remove(longest[0], item);
    return item;
  }
}
