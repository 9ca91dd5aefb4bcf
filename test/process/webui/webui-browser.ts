import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { requiredProgram } from '../../support/required-program.ts';
import type { Credentials } from '../../support/service-process.ts';

/** How long one step may take on a busy machine. Milliseconds. */
const STEP_TIMEOUT_MS = 60_000;

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeFinding {
  readonly id: string;
  readonly impact: string;
  readonly targets: string;
}

/** The findings of axe-core in a part of the page, as JSON. */
const look = (
  part: string,
  options: string,
): string => `axe.run(${part}, ${options}).then(({ violations }) =>
  JSON.stringify(violations.map(({ id, impact, nodes }) => ({ id, impact, targets: nodes.map(({ target, html }) =>
    target + ' ' + html).join(' | ').slice(0, 600) }))))`;

/** The dark scheme changes only colours, so only the contrast is checked in it. Only violations are collected. */
const schemes = [
  ['light', "{ resultTypes: ['violations'] }"],
  ['dark', "{ resultTypes: ['violations'], runOnly: ['color-contrast'] }"],
] as const;

/**
 * Whether a message in the console is about a view that has not reached the requested log position. The page reads it
 * again by itself, but the browser records the response.
 */
const isBehind = (text: string, url: string): boolean =>
  text.includes('status of 503') && /[?&]after=/.test(url);

/** Titles of the dialogs that this process has checked. */
const checkedDialogs = new Set<string>();

/** A page in the browser that the tests of a file share. */
export class Browsing {
  readonly page: Page;
  /** Errors in the console, exceptions, and requests to anywhere but the service. */
  readonly complaints: string[] = [];
  readonly #address: () => string;

  constructor(page: Page, address: () => string) {
    this.page = page;
    this.#address = address;
    page.setDefaultTimeout(STEP_TIMEOUT_MS);
    page.on('console', (message) => {
      const { url } = message.location();
      if (message.type() !== 'error' || isBehind(message.text(), url)) return;
      this.complaints.push(`${message.text()} ${url}`);
    });
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('dialog', (dialog) => {
      this.complaints.push(`a script dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => {
      const url = request.url();
      const known = url.startsWith(address()) || url.startsWith('data:');
      if (!known) this.complaints.push(`a request to ${url}`);
    });
  }

  /** Opens the page without a session. */
  async open(): Promise<void> {
    await this.#leave();
    await this.page.goto(`${this.#address()}/ext/webui/`);
  }

  async logIn(credentials: Credentials, to = ''): Promise<void> {
    const { page } = this;
    // Also because a change of the fragment alone would not load the page.
    await this.#leave();
    await page.goto(`${this.#address()}/ext/webui/${to === '' ? '' : `#/${to}`}`);
    await this.fillIn(credentials);
    await page.getByRole('navigation').getByRole('link').first().waitFor();
    if (to === '') await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  }

  /** Leaves the page before its session ends, because its requests would be rejected without one. */
  async #leave(): Promise<void> {
    const { page } = this;
    if (page.url() !== 'about:blank') await page.goto('about:blank');
    await page.context().clearCookies();
  }

  async fillIn({ agent_id, agent_secret }: Credentials): Promise<void> {
    await this.page.getByLabel('Agent ID').fill(agent_id);
    await this.page.getByLabel('Secret').fill(agent_secret);
    await this.page.getByRole('button', { name: 'Log in' }).click();
  }

  /** Goes to the view at `#/<view>`. */
  async goTo(view: string): Promise<void> {
    const to = JSON.stringify(`#/${view}`);
    // Waits until the page has processed the change, so that the test sees nothing of the previous view.
    await this.page.evaluate(`new Promise((resolve) => {
      if (location.hash === ${to}) return resolve();
      addEventListener('hashchange', () => resolve(), { once: true });
      location.hash = ${to};
    })`);
  }

  /** Goes to a tab of the task that is shown. */
  async openTab(name: string): Promise<void> {
    const tabs = this.page.getByRole('navigation', { name: 'Of this task' });
    await tabs.getByRole('link', { name }).click();
    await tabs.locator('[aria-current]', { hasText: name }).waitFor();
  }

  /** Creates a task with the form, which leads to its page. */
  async create(title: string, pipeline: readonly object[]): Promise<void> {
    const { page } = this;
    await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click();
    await page.getByRole('link', { name: 'New task' }).click();
    // The list has a field for titles, too.
    await page.getByRole('heading', { level: 1, name: 'New task' }).waitFor();
    await page.getByLabel('Title', { exact: true }).fill(title);
    await page.getByLabel('Pipeline (JSON)').fill(JSON.stringify({ pipeline }));
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
  }

  /** Enters a reason in the open dialog, and presses a button of it. Checks that the dialog is accessible. */
  async answer(action: string, reason = ''): Promise<void> {
    const dialog = this.page.getByRole('dialog');
    const title = (await dialog.getAttribute('aria-label')) ?? '';
    if (!checkedDialogs.has(title)) await this.expectAccessible("document.querySelector('dialog')");
    checkedDialogs.add(title);
    if (reason !== '') await dialog.getByLabel('Why').fill(reason);
    await dialog.getByRole('button', { name: action, exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  }

  /** Expects no finding, in the light and the dark scheme. @param part of the page, in JavaScript */
  async expectAccessible(part = 'document'): Promise<void> {
    const { page } = this;
    if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe);
    for (const [colorScheme, options] of schemes) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const findings = JSON.parse(await page.evaluate<string>(look(part, options))) as AxeFinding[];
      expect(findings, `${page.url()} ${colorScheme}`).to.deep.equal([]);
    }
  }

  /** The width of the document. Pixels. */
  width(): Promise<number> {
    return this.page.evaluate<number>('document.documentElement.scrollWidth');
  }
}

/** Options of {@link useBrowser}: a time zone in which no day ends during a test, because it is about noon there. */
export function atNoon(): BrowserContextOptions {
  const hours = 12 - new Date().getUTCHours();
  // The signs of these names are inverted: Etc/GMT-5 is five hours ahead of UTC.
  return { timezoneId: `Etc/GMT${hours > 0 ? '-' : '+'}${Math.abs(hours)}` };
}

/** Whether this process runs several files of tests, one after another. */
const isWorker = process.env['MOCHA_WORKER_ID'] !== undefined;

/** The browser of this process; its start takes as long as several tests. */
let running: Browser | undefined;

async function launched(executablePath: string): Promise<Browser> {
  if (running?.isConnected() !== true) {
    running = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  }
  return running;
}

/**
 * Called inside a `describe`: a page for each test, which shares nothing with the others but the browser. Skips the
 * tests without a browser. A worker of mocha keeps the browser for its next files; the browser ends with the worker.
 * @param options of each page: its time zone, for instance
 */
export function useBrowser(
  address: () => string,
  options: BrowserContextOptions = {},
): () => Browsing {
  let browser: Browser | undefined;
  let browsing: Browsing | undefined;
  before(async function () {
    browser = await launched(requiredProgram(this, 'chromium'));
  });
  after(async () => {
    if (!isWorker) await browser?.close();
  });
  beforeEach(async () => {
    if (browser === undefined) throw new Error('there is no browser');
    browsing = new Browsing(await browser.newPage(options), address);
  });
  afterEach(async () => {
    // A handler of a route may still be waiting for the service.
    await browsing?.page.unrouteAll({ behavior: 'ignoreErrors' });
    await browsing?.page.close();
  });
  return () => {
    if (browsing === undefined) throw new Error('there is no page');
    return browsing;
  };
}
