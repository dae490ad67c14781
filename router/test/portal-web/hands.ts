/** Two ways to do the same: with only a keyboard, and with clicks. */
import type { Page } from "./browser.ts";
import { chooseInMenu, focusedName, goTo, nameOf, press, tabTo } from "./keyboard.ts";

export interface Hand {
  /** Puts the focus on an element of this name. */
  readonly reach: (page: Page, name: RegExp) => Promise<void>;
  readonly press: (page: Page, name: RegExp) => Promise<void>;
  /** Sends the form with the focus by its button of this name. */
  readonly submit: (page: Page, name: RegExp) => Promise<void>;
  /** Chooses an option of the list with this name. */
  readonly select: (page: Page, name: RegExp, option: string) => Promise<void>;
  /** Opens a page by the navigation. */
  readonly goTo: (page: Page, title: string) => Promise<void>;
  /** Chooses an entry of the open menu. */
  readonly choose: (page: Page, item: string) => Promise<void>;
}

const keyboard: Hand = {
  reach,
  press,
  async submit(page, name) {
    // In a list of options, Enter opens it.
    if (await page.evaluate("document.activeElement.localName === 'select'")) return await press(page, name);
    await page.keyboard.press("Enter");
  },
  async select(page, name, option) {
    await reach(page, name);
    await page.keyboard.type(option);
  },
  goTo,
  choose: chooseInMenu,
};

/** Keeps the focus if it is already on the first field, as in many dialogs. */
async function reach(page: Page, name: RegExp): Promise<void> {
  if (!name.test(await focusedName(page))) await tabTo(page, name);
}

const mouse: Hand = {
  reach: click,
  press: click,
  submit: click,
  async select(page, name, option) {
    await (await find(page, name)).selectOption(option);
  },
  async goTo(page, title) {
    await page.locator("nav").getByRole("link", { name: title, exact: true }).click();
    await page.getByRole("heading", { name: title, exact: true, level: 1 }).waitFor();
  },
  choose: (page, item) => page.getByRole("menuitem", { name: item, exact: true }).click(),
};

/** Both ways, for `test.each`. */
export const hands = [
  ["by keyboard alone", keyboard],
  ["by mouse", mouse],
] as const;

/** Clicks again if the page was rendered again between the search and the click. */
async function click(page: Page, name: RegExp): Promise<void> {
  const isGone = (error: Error) => error.message.includes("not attached to the DOM");
  for (let done = false; !done;) {
    const found = await find(page, name);
    done = await found.click().then(
      () => true,
      (error: Error) => {
        if (isGone(error)) return false;
        throw error;
      },
    );
  }
}

/** Finds the first usable element of this name, in the dialog if one is open. */
async function find(page: Page, name: RegExp) {
  const found = await page.evaluateHandle(`new Promise((done, fail) => {
    const nameOf = ${nameOf};
    const name = new RegExp(${JSON.stringify(name.source)});
    const isMeant = (one) => one.checkVisibility() && !one.disabled && name.test(nameOf(one));
    const look = () => {
      const scope = [...document.querySelectorAll("dialog[open]")].at(-1) ?? document;
      const found = [...scope.querySelectorAll("a, button, input, select, textarea, summary")].find(isMeant);
      if (found) done(found);
      else requestAnimationFrame(look);
    };
    setTimeout(() => fail(new Error("nothing can be clicked that is called " + name)), 10_000);
    look();
  })`);
  return found.asElement()!;
}
