/** Rules for passwords: only a length, no character classes. */
import { RequestError } from "../rights/request-error.ts";

const passwordLengthMin = 12;
const passwordBytesMax = 1024;

/** Normalizes to NFC, because keyboards compose the same letter in different ways. */
export function normalPassword(password: string): string {
  return password.normalize("NFC");
}

/** Returns the normal form; throws a `RequestError` if it is too short or too long. */
export function goodPassword(password: string): string {
  const normal = normalPassword(password);
  if (Array.from(normal).length < passwordLengthMin)
    throw new RequestError("invalid", `a password must have at least ${passwordLengthMin} characters`);
  if (Buffer.byteLength(normal) > passwordBytesMax)
    throw new RequestError("invalid", `a password may have at most ${passwordBytesMax} bytes`);
  return normal;
}
