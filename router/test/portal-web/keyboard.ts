/** A person who uses only a keyboard. */
import type { Page } from "./browser.ts";

/** Beyond the rows of a full page of a list. */
const pressesMax = 200;

/** Presses Tab until the focus is on an element of this name: its label, its text, or its field's label. */
export async function tabTo(page: Page, name: RegExp, max = pressesMax): Promise<void> {
  for (let presses = 0; presses < max; presses++) {
    await page.keyboard.press("Tab");
    if (name.test(await focusedName(page))) return;
  }
  throw new Error(`Tab leads to nothing that is called ${name.source}`);
}

/** Moves to an element by Tab, then presses Enter. */
export async function press(page: Page, name: RegExp, max = pressesMax): Promise<void> {
  await tabTo(page, name, max);
  await page.keyboard.press("Enter");
}

/** Goes to a page by the navigation, whose links have the same names as some buttons. */
export async function goTo(page: Page, title: string): Promise<void> {
  for (let presses = 0; presses < pressesMax; presses++) {
    await page.keyboard.press("Tab");
    const isLink = await page.evaluate("document.activeElement?.closest('nav a') !== null");
    if (!isLink || (await focusedName(page)).trim() !== title) continue;
    await page.keyboard.press("Enter");
    return await page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor();
  }
  throw new Error(`Tab leads to no page that is called ${title}`);
}

/** Chooses an entry of the open menu. */
export async function chooseInMenu(page: Page, item: string): Promise<void> {
  for (let presses = 0; presses < pressesMax; presses++) {
    if ((await focusedName(page)).trim() === item) return await page.keyboard.press("Enter");
    await page.keyboard.press("ArrowDown");
  }
  throw new Error(`the menu has no ${item}`);
}

/** A function in the page that returns an element's name: its label, its text, or its field's label. */
export const nameOf = `((one) => {
  const texts = [one.getAttribute("aria-label"), one.textContent, ...[...(one.labels ?? [])].map(({ textContent }) => textContent)];
  return texts.filter(Boolean).join(" ");
})`;

export async function focusedName(page: Page): Promise<string> {
  // Without a focus, the active element is the whole page, and the page's text is not the name of an element.
  const name = await page.evaluate(`(() => {
    const { activeElement: focused, body } = document;
    return focused === null || focused === body ? "" : ${nameOf}(focused);
  })()`);
  return String(name);
}
