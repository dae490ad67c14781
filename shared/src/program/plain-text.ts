/**
 * Makes text from others safe to show: no character can control a terminal, break a line or change the direction of
 * text, so that nobody can fake a line or a column.
 */
const steering = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
/** JSON escapes the others. */
const steeringInJson = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export function plainText(text: string): string {
  return text.replace(steering, "?");
}

/** Returns equivalent JSON; line breaks between values stay. */
export function plainJson(json: string): string {
  return json.replace(steeringInJson, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
