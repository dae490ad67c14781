/** Picks the line of an engine's output that explains why its start failed: the last error, not shutdown noise. */

/** Log prefix that vLLM and Python put before each line. */
const prefix = /^(?:\([^()]*pid=\d+\)\s)?\s?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d-]+ [\d:.,]+ \[[^\]]*\] ?)?/;

const error =
  /^(?:[\w.]+(?:Error|Exception|Interrupt)\b)|^\s{0,4}(?:Value error|Assertion failed),|\b(?:error|failed|fatal|cannot|couldn't|could not|unable|unknown|invalid|not found|no such|out of memory|illegal|abort(?:ed)?)\b/i;

/** Generic messages that explain no failure. */
const pointer =
  /see (?:root cause|stack trace) .{0,8}above|exiting due to|cleaning up|failed to load model|failed to start\.?$/i;

/** Shutdown messages, and lines of tracebacks and validation errors. */
const noise =
  /resource_tracker|warnings\.warn|\w+Warning:|for further information visit|^Traceback |^Exception ignored|^\s+(?:File "|\^|raise |return |await |self\.|with |for )|^\s*\^+\s*$|never retrieved/i;

/** `lines`: oldest first. Returns an empty string if there are none. */
export function tellingLine(lines: readonly string[]): string {
  const said = lines.map((line) => line.replace(prefix, "").trimEnd()).filter((line) => line.trim() !== "");
  const plain = said.filter((line) => !noise.test(line));
  const last =
    plain.findLast((line) => error.test(line) && !pointer.test(line)) ??
    plain.findLast((line) => pointer.test(line)) ??
    plain.at(-1) ??
    said.at(-1);
  return (last ?? "").trim();
}
