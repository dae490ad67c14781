/** Reads a text file line by line, in pieces, because a trace may be larger than memory. */
import { closeSync, openSync, readSync } from "node:fs";

const pieceBytes = 65_536;

/** Yields lines without their ends. A last line without an end counts, an empty rest does not. */
export function* linesOf(file: string): Generator<string, void, undefined> {
  const descriptor = openSync(file, "r");
  try {
    const decoder = new TextDecoder();
    const bytes = Buffer.allocUnsafe(pieceBytes);
    let rest = "";
    for (let count; (count = readSync(descriptor, bytes, 0, pieceBytes, null)) > 0;) {
      const lines = (rest + decoder.decode(bytes.subarray(0, count), { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines) yield withoutReturn(line);
    }
    if (rest !== "") yield withoutReturn(rest);
  } finally {
    closeSync(descriptor);
  }
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}
