/** Normalizes and validates e-mail addresses. Case and surrounding spaces do not matter. */
import type { UserId } from "@weiche/shared/ids.ts";
import { RequestError } from "../rights/request-error.ts";

const lengthMax = 254;
const localLengthMax = 64;
const domainLengthMax = 253;

/**
 * Returns the form in which an address is looked up. It accepts addresses that `newAddress` refuses, because users of
 * earlier versions may have them.
 */
export function normalEmail(text: string): string {
  const email = text.trim().toLowerCase();
  // Checked after lower-casing, which can turn one character into two.
  if (email.length > lengthMax)
    throw new RequestError("invalid", `an e-mail address has at most ${lengthMax} characters`);
  return email;
}

/** `.invalid` is reserved (RFC 2606), so no mail server has it. */
const deletedDomain = "@deleted.invalid";

/**
 * Returns the address that replaces a deleted user's address, which becomes free again. `suffix` is needed if a user of an
 * earlier version already has the usual replacement.
 */
export function deletedAddress(id: UserId, suffix?: string): string {
  return `${suffix === undefined ? id : `${id}.${suffix}`}${deletedDomain}`;
}

/**
 * RFC 5322 addresses without quotes, comments, brackets or a display name: mail programs remove these, so that two
 * addresses would reach one mailbox. The last label must not be numeric, because a domain such as `127.1` has other
 * spellings.
 */
const atom = "[a-z0-9!#$%&'*+/=?^_`{|}~-]+";
const label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const strict = new RegExp(`^(${atom}(?:\\.${atom})*)@((?:${label}\\.)*(?=[a-z])${label})$`);

/** Returns the normal form of a new user's address, the only one of its mailbox. Throws a `RequestError` if it is invalid. */
export function newAddress(text: string): string {
  const email = normalEmail(text);
  const [, local = "", domain = ""] = strict.exec(email) ?? [];
  // Some non-ASCII letters become ASCII when lower-cased.
  const isPlain = /^[\x20-\x7e]*$/.test(text);
  if (!isPlain || !local || local.length > localLengthMax || domain.length > domainLengthMax)
    throw new RequestError("invalid", "this is not a valid e-mail address: use name@domain in ASCII letters");
  // `deletedAddress` makes such addresses.
  if (email.endsWith(deletedDomain)) throw new RequestError("invalid", "this e-mail address is reserved");
  return email;
}
