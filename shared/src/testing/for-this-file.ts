import { afterAll } from "vitest";

/** Waits for something that all tests of a file share, such as a server, and disposes of it after the last test. */
export async function forThisFile<T extends AsyncDisposable | Disposable>(opening: T | Promise<T>): Promise<T> {
  const opened = await opening;
  afterAll(() => (Symbol.asyncDispose in opened ? opened[Symbol.asyncDispose]() : opened[Symbol.dispose]()));
  return opened;
}
