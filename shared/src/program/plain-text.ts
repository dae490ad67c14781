/**
 * Texts that others chose, for people to read: no character steers a terminal, ends a line early or turns the direction
 * of what follows, so that nobody writes a line or a column that is not theirs.
 */
const steering = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
/** JSON itself escapes the others. */
const steeringInJson = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export function plainText(text: string): string {
  return text.replace(steering, "?");
}

/** JSON that means the same. Its own line ends stay. */
export function plainJson(json: string): string {
  return json.replace(steeringInJson, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
