import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { eventually } from '../../support/signals.ts';

/** More Tab stops than any view has. A control that appears later is reached after more of them. */
const MAX_STOPS = 200;
/** How long an element may take to get the focus. Milliseconds. */
export const FOCUS_LIMIT_MS = 60_000;

/** The element with the focus: its accessible name, and whether its focus is visible. */
interface Focused {
  readonly name: string;
  readonly isVisible: boolean;
}

const focused = `(({ activeElement: element, body }) => {
  if (element === body) return { name: '', isVisible: false };
  const labelled = element.labels?.[0] ?? element;
  const name = element.getAttribute('aria-label') ?? labelled.textContent;
  const { outlineStyle, outlineWidth } = getComputedStyle(element);
  const isVisible = element.matches(':focus-visible') && outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
  return { name: name.trim().replace(/\\s+/g, ' '), isVisible };
})(document)`;

const focusIn = (page: Page): Promise<Focused> => page.evaluate<Focused>(focused);

/**
 * From the first focus on, records each address at which no element has the focus for longer than a person would miss.
 * Between two dialogs, a frame or two without a focus are normal.
 */
const watch = `addEventListener('focusin', () => {
  window.withoutFocus = [];
  let since = null;
  const look = () => {
    if (document.activeElement !== document.body) since = null;
    else if (since === null) since = performance.now();
    else if (performance.now() - since > 300) {
      window.withoutFocus.push(location.hash);
      since = Infinity;
    }
    requestAnimationFrame(look);
  };
  look();
}, { once: true })`;

const matches = (name: string, wanted: string | RegExp): boolean =>
  typeof wanted === 'string' ? name === wanted : wanted.test(name);

/**
 * Presses Tab until the control with this name has the focus, and expects that the focus is visible.
 * @param key `Shift+Tab` goes back
 */
export async function tabTo(page: Page, wanted: string | RegExp, key = 'Tab'): Promise<void> {
  const begun = performance.now();
  for (let stop = 0; stop < MAX_STOPS || performance.now() - begun < FOCUS_LIMIT_MS; stop += 1) {
    await page.keyboard.press(key);
    const { name, isVisible } = await focusIn(page);
    if (!matches(name, wanted)) continue;
    expect(isVisible, `${name} shows that it has the focus`).to.equal(true);
    return;
  }
  throw new Error(`the Tab key does not reach “${String(wanted)}”`);
}

/** Goes to a control with {@link tabTo}, and presses Enter. */
export async function enter(page: Page, wanted: string | RegExp, key = 'Tab'): Promise<void> {
  await tabTo(page, wanted, key);
  await page.keyboard.press('Enter');
}

/** Replaces the text of the field with the focus. */
export async function overwrite(page: Page, text: string): Promise<void> {
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
}

/** Waits until the control with this name has the focus. */
export async function expectFocus(page: Page, wanted: string | RegExp): Promise<void> {
  let name = '';
  const isThere = async (): Promise<boolean> => {
    ({ name } = await focusIn(page));
    return matches(name, wanted);
  };
  await eventually(isThere, { limitMs: FOCUS_LIMIT_MS }).catch(() => {
    throw new Error(`“${name}” has the focus, not “${String(wanted)}”`);
  });
}

/** Starts to record lost focus at the next load of the page. */
export const watchFocus = (page: Page): Promise<unknown> => page.addInitScript(watch);

/** Expects that the focus has not been lost since the page was loaded. */
export async function expectFocusKept(page: Page): Promise<void> {
  expect(await page.evaluate<readonly string[]>('window.withoutFocus')).to.deep.equal([]);
}
