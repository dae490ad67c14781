/** Chooses between the words for one and for more. `count`: as the language writes it. */
export function counted(count: string, one: string, more: string): string {
  return `${count} ${count === "1" ? one : more}`;
}
