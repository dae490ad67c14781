/** Two people who do the same: one has a keyboard and nothing else, the other clicks on whatever can be clicked. */
import type { Page } from "./browser.ts";
import { chooseInMenu, focusedName, goTo, nameOf, press, tabTo } from "./keyboard.ts";

export interface Hand {
  /** Puts the focus on something of this name. */
  readonly reach: (page: Page, name: RegExp) => Promise<void>;
  readonly press: (page: Page, name: RegExp) => Promise<void>;
  /** Sends the form in which the focus is, by its button of this name. */
  readonly submit: (page: Page, name: RegExp) => Promise<void>;
  /** Chooses an option of a list that has this name. */
  readonly select: (page: Page, name: RegExp, option: string) => Promise<void>;
  /** Opens a page by the list of pages. */
  readonly goTo: (page: Page, title: string) => Promise<void>;
  /** In the menu that is open. */
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

/** Many dialogs have the focus where somebody begins. */
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

/** For `test.each`. */
export const hands = [
  ["by keyboard alone", keyboard],
  ["by mouse", mouse],
] as const;

/** Once more, if the page was drawn anew between the look and the click. */
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

/** The first thing of this name that can be used, in the dialog if one is open. */
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
