/**
 * A map for entries that come and go with each request. Unlike a `Map`, it releases removed values at once.
 *
 * V8 gives a `Map` a new hash table whenever it fills up, removed entries included. A replaced table keeps its entries
 * until it is collected itself. The tables of an old map are old too, and only a collection of the whole heap removes
 * them. Until then each old table keeps its former entries and all objects that they refer to. So whole requests move
 * to the old generation, which is the most expensive part of a collection. Here a table holds boxes, and a box is
 * emptied when its entry is removed.
 */

interface Box<V> {
  value: V | undefined;
}

/** `K`: plain values, no objects, because keys are kept as a `Map` keeps them. */
export class TransientMap<K extends string | number | bigint, V> {
  readonly #boxes = new Map<K, Box<V>>();

  get size(): number {
    return this.#boxes.size;
  }

  has(key: K): boolean {
    return this.#boxes.has(key);
  }

  get(key: K): V | undefined {
    return this.#boxes.get(key)?.value;
  }

  set(key: K, value: V): void {
    const box = this.#boxes.get(key);
    if (box) box.value = value;
    else this.#boxes.set(key, { value });
  }

  delete(key: K): boolean {
    const box = this.#boxes.get(key);
    if (box) box.value = undefined;
    return this.#boxes.delete(key);
  }

  clear(): void {
    for (const box of this.#boxes.values()) box.value = undefined;
    this.#boxes.clear();
  }

  keys(): MapIterator<K> {
    return this.#boxes.keys();
  }

  /** In the order of insertion. */
  values(): IteratorObject<V> {
    return this.#boxes.values().map((box) => box.value as V);
  }
}
