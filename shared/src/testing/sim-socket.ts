/**
 * A socket whose peer is the test. The test sends bytes, reads what was written, and decides when writes count as sent.
 */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";

export class SimSocket extends EventEmitter {
  destroyed = false;
  /** Whether the connection has not closed its side. */
  writable = true;
  /** While true, writes stay unsent. */
  isStuck = false;
  #written: Buffer[] = [];
  readonly #unsent: { readonly sent: () => void; readonly memory: ArrayBufferLike }[] = [];

  get asSocket(): Socket {
    return this as unknown as Socket;
  }

  /** Returns the bytes written since the last call. */
  written(): Buffer {
    const bytes = Buffer.concat(this.#written);
    this.#written = [];
    return bytes;
  }

  /** Marks the oldest write as sent. Returns false if there is none. */
  sendOne(): boolean {
    const oldest = this.#unsent.shift();
    oldest?.sent();
    return oldest !== undefined;
  }

  /** Returns the memory of the unsent writes, in bytes. */
  get heldBytes(): number {
    return new Set(this.#unsent.map(({ memory }) => memory))
      .values()
      .reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  say(bytes: Buffer): void {
    if (!this.destroyed) this.emit("data", bytes);
  }

  write(bytes: Buffer, sent: () => void): boolean {
    if (!this.writable) throw new Error("a write after the end");
    this.#written.push(Buffer.from(bytes));
    this.#unsent.push({ sent, memory: bytes.buffer });
    if (!this.isStuck) queueMicrotask(() => this.sendOne());
    return true;
  }

  end(): this {
    this.writable = false;
    return this;
  }

  destroySoon(): void {
    this.destroy();
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this;
    if (error) this.emit("error", error);
    this.destroyed = true;
    this.writable = false;
    queueMicrotask(() => this.emit("close"));
    return this;
  }

  /** Does nothing, because the test decides when the peer sends. */
  pause(): this {
    return this;
  }

  resume(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }
}
