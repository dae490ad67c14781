import { afterAll } from "vitest";

/** Waits for what all tests of a file share, such as a server, and disposes of it after the last one. Call at the top. */
export async function forThisFile<T extends AsyncDisposable>(opening: Promise<T>): Promise<T> {
  const opened = await opening;
  afterAll(() => opened[Symbol.asyncDispose]());
  return opened;
}
