/** Who waits, in one line per name. The lines take turns, so that a long one holds up nobody in another. Pure but for its state. */
export class FairLine<T> {
  /** The line whose turn is next comes first. None is empty. */
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

  /** The last of the longest line, if somebody new in `name` has fewer before them: who asks for most is refused first. */
  takeExcess(name: string): T | undefined {
    let longest: readonly [string, T[]] | undefined;
    for (const entry of this.#lines) if (entry[1].length > (longest?.[1].length ?? 0)) longest = entry;
    if (!longest || longest[1].length <= (this.#lines.get(name)?.length ?? 0) + 1) return undefined;
    const item = longest[1].at(-1)!;
    this.remove(longest[0], item);
    return item;
  }
}
