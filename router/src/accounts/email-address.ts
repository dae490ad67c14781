/** E-mail addresses as they are stored and compared: whoever types one twice need not type it alike. */
import { Refused } from "./refused.ts";

const lengthMax = 254;

export function normalEmail(text: string): string {
  const email = text.trim().toLowerCase();
  // Some letters become two.
  if (email.length > lengthMax) throw new Refused("invalid", `an e-mail address has at most ${lengthMax} characters`);
  return email;
}
