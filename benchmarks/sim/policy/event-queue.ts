/** Events in order of time, those of one instant in the order in which they were added: a binary heap. */
export class EventQueue {
  #nowMs = 0;
  #added = 0;
  readonly #heap: Event[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  add(atMs: number, act: () => void): void {
    const heap = this.#heap;
    const event: Event = { atMs, order: this.#added++, act };
    let index = heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (isBefore(heap[parent]!, event)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = event;
  }

  /** Lets the next event happen. False if there is none. */
  step(): boolean {
    const [first] = this.#heap;
    if (!first) return false;
    this.#removeFirst();
    this.#nowMs = first.atMs;
    first.act();
    return true;
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return;
    let index = 0;
    for (let child = 1; child < length; child = 2 * index + 1) {
      if (child + 1 < length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (isBefore(last, heap[child]!)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
  }
}

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly act: () => void;
}

function isBefore(a: Event, b: Event): boolean {
  return (a.atMs - b.atMs || a.order - b.order) < 0;
}
