/** E-mail addresses as they are stored and compared: whoever types one twice need not type it alike. */
import type { UserId } from "@weiche/shared/ids.ts";
import { Refused } from "./refused.ts";

const lengthMax = 254;

export function normalEmail(text: string): string {
  const email = text.trim().toLowerCase();
  // Some letters become two.
  if (email.length > lengthMax) throw new Refused("invalid", `an e-mail address has at most ${lengthMax} characters`);
  return email;
}

/** Of no mail server: `.invalid` is reserved. */
const deletedDomain = "@deleted.invalid";

/** What takes the place of a deleted user's address, which is free again. */
export function deletedAddress(id: UserId): string {
  return `${id}${deletedDomain}`;
}

/** The normal form of a new user's address. Refused if it may have to take the place of a deleted one. */
export function newAddress(text: string): string {
  const email = normalEmail(text);
  if (email.endsWith(deletedDomain)) throw new Refused("invalid", "this e-mail address belongs to nobody");
  return email;
}
