import type { Page } from 'playwright-core';

/** More stops of the Tab key than any view has. */
const MAX_STOPS = 200;

const focusedName = `(({ activeElement: element }) =>
  element.getAttribute('aria-label') ?? (element.labels?.[0] ?? element).textContent.trim())(document)`;

/** Presses Tab until the focus is on the control with a name. */
export async function tabTo(page: Page, name: string): Promise<void> {
  for (let stop = 0; stop < MAX_STOPS; stop += 1) {
    await page.keyboard.press('Tab');
    if ((await page.evaluate<string>(focusedName)) === name) return;
  }
  throw new Error(`the Tab key does not reach “${name}”`);
}
