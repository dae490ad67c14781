/** An answer as a CSV file, row by row: however long it is, little of it is in memory. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Call } from "./api-routes.ts";
import type { Route } from "./contract/route.ts";

/** What goes wrong before the first piece is still an error body; after it the connection is cut. */
export async function sendCsv(
  { takeOver }: Pick<Call<Route>, "takeOver">,
  fileName: string,
  lines: AsyncGenerator<string, void, undefined>,
): Promise<void> {
  const first = await lines.next();
  const { response } = takeOver();
  response.writeHead(200, {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="${fileName}"`,
  });
  async function* pieces() {
    if (!first.done) yield first.value;
    yield* lines;
  }
  try {
    await pipeline(Readable.from(pieces()), response);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  } finally {
    await lines.return();
  }
}
