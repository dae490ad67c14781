/**
 * Assigns the parts of an engine's chunks to the answers of a request. If only one answer was requested, some engines
 * send no index, and some count their chunks in it.
 */
import type { EngineChunk } from "./dialect.ts";
import { EngineFault } from "./engine-fault.ts";

export class ChoiceIndexes {
  readonly #choices: number;
  /** The highest index so far. */
  #highest = 0;

  constructor(choices: number) {
    this.#choices = choices;
  }

  /** Throws an `EngineFault` if a part belongs to no answer or may belong to several. */
  read(chunk: EngineChunk): EngineChunk {
    if (this.#choices > 1) {
      if (chunk.choices.some(({ hasNoIndex }) => hasNoIndex))
        throw new EngineFault("malformed", "a choice without an index, though several answers were requested");
      return chunk;
    }
    const [first] = chunk.choices;
    if (!first || (first.index === 0 && this.#highest === 0 && chunk.choices.length === 1)) return chunk;
    for (const { index, hasNoIndex } of chunk.choices) {
      // Indexes of several answers go back or differ within a chunk.
      const isOther = index !== first.index || (index < this.#highest && !hasNoIndex);
      if (isOther) throw new EngineFault("malformed", "an answer that was not requested");
    }
    this.#highest = Math.max(this.#highest, first.index);
    return { ...chunk, choices: chunk.choices.map((delta) => ({ ...delta, index: 0 })) };
  }
}
