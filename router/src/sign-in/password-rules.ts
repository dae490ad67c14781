/** What a password has to be. Long is what counts; what it is made of is its owner's business. */
import { Refused } from "../rights/refused.ts";

export const passwordLengthMin = 12;
export const passwordBytesMax = 1024;

/** The same password however a keyboard composes its letters. */
export function normalPassword(password: string): string {
  return password.normalize("NFC");
}

/** The normal form; throws `Refused` if it is not good enough. */
export function goodPassword(password: string): string {
  const normal = normalPassword(password);
  if (Array.from(normal).length < passwordLengthMin)
    throw new Refused("invalid", `a password has at least ${passwordLengthMin} characters`);
  if (Buffer.byteLength(normal) > passwordBytesMax)
    throw new Refused("invalid", `a password has at most ${passwordBytesMax} bytes`);
  return normal;
}
