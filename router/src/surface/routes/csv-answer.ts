/** Sends a CSV file row by row, so that little of it is in memory. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { Call } from "../server/add-routes.ts";
import type { ExportPlaces } from "./export-places.ts";
import type { Session } from "../../sign-in/sessions.ts";
import type { Route } from "../contract/route.ts";

/** A client that reads nothing for this time is cut, since it keeps a place from others. */
export const unreadMsMax = 30_000;

/** Time limit of an export. */
export const exportMsMax = 600_000;

export interface CsvFile {
  readonly fileName: string;
  /** `left`: aborts when the client leaves. */
  readonly lines: (left: AbortSignal) => AsyncGenerator<string, void, undefined>;
}

/** Waits for a place and sends the file. Does nothing more once the client has left. */
export async function exportCsv(
  call: Pick<Call<Route>, "takeOver" | "left"> & { readonly session: Session },
  clock: Clock,
  places: ExportPlaces,
  file: CsvFile,
): Promise<void> {
  const { left } = call;
  try {
    using _place = await places(call.session.user.accountId, left);
    await sendCsv(call, clock, file.fileName, file.lines(left));
  } catch (error) {
    if (!left.aborted) throw error;
  }
}

/** Throws for errors before the first piece; cuts the connection for later ones, and if the client does not read. */
export async function sendCsv(
  { takeOver }: Pick<Call<Route>, "takeOver">,
  clock: Clock,
  fileName: string,
  lines: AsyncGenerator<string, void, undefined>,
): Promise<void> {
  const first = await lines.next();
  const { response } = takeOver();
  const end = clock.after(exportMsMax, () => response.destroy());
  response.writeHead(200, {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="${fileName}"`,
  });
  let unread: Timer | undefined;
  // Runs while a piece waits to be read, not while the next one is made.
  const wait = () => (unread = clock.after(unreadMsMax, () => response.destroy()));
  async function* pieces() {
    for (let piece = first; !piece.done; piece = await lines.next()) {
      wait();
      yield piece.value;
      unread?.cancel();
    }
    wait();
  }
  try {
    await pipeline(Readable.from(pieces()), response);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  } finally {
    end.cancel();
    unread?.cancel();
    await lines.return();
  }
}
