/** Sends a CSV file row by row, to keep little of it in memory. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Clock, Timer } from "@weiche/shared/time/clock.ts";
import type { Call } from "../server/add-routes.ts";
import type { ExportPlace, ExportPlaces } from "./export-places.ts";
import type { Session } from "../../sign-in/sessions.ts";
import type { Route } from "../contract/route.ts";

/** A client that reads nothing for this time is cut off, because it occupies a place. */
export const unreadMsMax = 30_000;
/** Each of these bytes gives a client one more second, so a client that stays slower is cut off, too. */
const bytesPerSecondMin = 20_000;

/** Time limit of an export. */
export const exportMsMax = 600_000;

interface CsvFile {
  readonly fileName: string;
  /** Makes the lines. `left` aborts when the client leaves. */
  readonly lines: (left: AbortSignal) => AsyncGenerator<string, void, undefined>;
}

/** Waits for a place and sends the file. Stops without an error when the client leaves. */
export async function exportCsv(
  call: Pick<Call<Route>, "takeOver" | "left"> & { readonly session: Session },
  clock: Clock,
  places: ExportPlaces,
  file: CsvFile,
): Promise<void> {
  const { left } = call;
  try {
    using place = await places(call.session.user.accountId, left);
    await sendCsv(call, clock, place, file.fileName, file.lines(left));
  } catch (error) {
    if (!left.aborted) throw error;
  }
}

/**
 * Throws errors that happen before the first piece. Later errors cut the connection, as do a client that reads too slowly
 * and a place that must give way.
 */
export async function sendCsv(
  { takeOver }: Pick<Call<Route>, "takeOver">,
  clock: Clock,
  place: ExportPlace,
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
  place.onGiveWay = () => response.destroy();
  let unread: Timer | undefined;
  /** The client's remaining time for reading. Making pieces takes none of it. */
  let leftMs = unreadMsMax;
  const wait = () => (unread = clock.after(Math.min(leftMs, unreadMsMax), () => response.destroy()));
  async function* pieces() {
    for (let piece = first; !piece.done; piece = await lines.next()) {
      const offeredAtMs = clock.monotonicMs();
      place.offer();
      wait();
      yield piece.value;
      unread?.cancel();
      place.took(piece.value.length);
      leftMs += (piece.value.length / bytesPerSecondMin) * 1_000 - (clock.monotonicMs() - offeredAtMs);
    }
    place.offer();
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
