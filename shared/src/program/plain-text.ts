/**
 * Makes foreign text safe to show. No character can control a terminal, break a line or change the text's direction, so
 * nobody can fake a line or a column.
 */
const breaks = /[\t\n\r\u2028\u2029]+/g;
const steering = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;
/** Dangerous characters that JSON does not escape. */
const steeringInJson = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

export function plainText(text: string): string {
  return text.replaceAll(breaks, " ").replace(steering, "?");
}

/** Returns equivalent JSON without dangerous characters. Line breaks between values stay. */
export function plainJson(json: string): string {
  return json.replace(steeringInJson, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
