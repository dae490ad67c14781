/** E-mail addresses as they are stored and compared: whoever types one twice need not type it alike. */
import type { UserId } from "@weiche/shared/ids.ts";
import { Refused } from "../rights/refused.ts";

const lengthMax = 254;
const localLengthMax = 64;
const domainLengthMax = 253;

/**
 * What an address is looked up by. Users of earlier versions may have addresses that a new user could not have: they sign
 * in with them as ever.
 */
export function normalEmail(text: string): string {
  const email = text.trim().toLowerCase();
  // Some letters become two.
  if (email.length > lengthMax) throw new Refused("invalid", `an e-mail address has at most ${lengthMax} characters`);
  return email;
}

/** Of no mail server: `.invalid` is reserved. */
const deletedDomain = "@deleted.invalid";

/**
 * What takes the place of a deleted user's address, which is free again. `suffix`: where somebody of an earlier version,
 * which did not keep these addresses free, has the usual one.
 */
export function deletedAddress(id: UserId, suffix?: string): string {
  return `${suffix === undefined ? id : `${id}.${suffix}`}${deletedDomain}`;
}

/**
 * A name and a domain as RFC 5322 has them without quotes, comments, brackets or a display name, all of which mail
 * programs take off again: two addresses of ours would be one mailbox. The last label is no number: a domain such as
 * `127.1` has other spellings.
 */
const atom = "[a-z0-9!#$%&'*+/=?^_`{|}~-]+";
const label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const strict = new RegExp(`^(${atom}(?:\\.${atom})*)@((?:${label}\\.)*(?=[a-z])${label})$`);

/** The normal form of a new user's address: a mail to it reaches this one mailbox. Refused if it is no such address. */
export function newAddress(text: string): string {
  const email = normalEmail(text);
  const [, local = "", domain = ""] = strict.exec(email) ?? [];
  // What is no ASCII letter may become one in lower case.
  const isPlain = /^[\x20-\x7e]*$/.test(text);
  if (!isPlain || !local || local.length > localLengthMax || domain.length > domainLengthMax)
    throw new Refused("invalid", "this is no e-mail address that mail could be sent to: name@domain in ASCII letters");
  // It may have to take the place of a deleted one.
  if (email.endsWith(deletedDomain)) throw new Refused("invalid", "this e-mail address belongs to nobody");
  return email;
}
