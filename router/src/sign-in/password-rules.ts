/** Rules for passwords: their length alone, no classes of characters. */
import { RequestError } from "../rights/request-error.ts";

export const passwordLengthMin = 12;
export const passwordBytesMax = 1024;

/** NFC, since keyboards compose the same letter in different ways. */
export function normalPassword(password: string): string {
  return password.normalize("NFC");
}

/** Returns the normal form; throws `RequestError` if it is too short or too long. */
export function goodPassword(password: string): string {
  const normal = normalPassword(password);
  if (Array.from(normal).length < passwordLengthMin)
    throw new RequestError("invalid", `a password has at least ${passwordLengthMin} characters`);
  if (Buffer.byteLength(normal) > passwordBytesMax)
    throw new RequestError("invalid", `a password has at most ${passwordBytesMax} bytes`);
  return normal;
}
