import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { requiredProgram } from '../../support/required-program.ts';
import type { Credentials } from '../../support/service-process.ts';

/** How long one step may take on a busy machine. Milliseconds. */
export const PATIENCE = 20_000;

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeFinding {
  readonly id: string;
  readonly impact: string;
  readonly targets: string;
}

/** The findings of axe-core in the page, as JSON. @param rules limits them to these */
const look = (rules: string): string => `axe.run(document, ${rules}).then(({ violations }) =>
  JSON.stringify(violations.map(({ id, impact, nodes }) => ({ id, impact, targets: nodes.map(({ target, html }) =>
    target + ' ' + html).join(' | ').slice(0, 600) }))))`;

/** Another colour scheme changes nothing but the colours. */
const schemes = [
  ['light', '{}'],
  ['dark', "{ runOnly: ['color-contrast'] }"],
] as const;

/** A page in the browser that the tests of a file share. */
export class Browsing {
  readonly page: Page;
  /** Errors in the console, exceptions, and requests to anywhere but the service. */
  readonly complaints: string[] = [];
  readonly #address: () => string;

  constructor(page: Page, address: () => string) {
    this.page = page;
    this.#address = address;
    page.setDefaultTimeout(PATIENCE);
    page.on('console', (message) => {
      const { url } = message.location();
      if (message.type() === 'error') this.complaints.push(`${message.text()} ${url}`);
    });
    page.on('pageerror', (error) => this.complaints.push(String(error)));
    page.on('dialog', (dialog) => {
      this.complaints.push(`a dialog of script: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => {
      const url = request.url();
      const known = url.startsWith(address()) || url.startsWith('data:');
      if (!known) this.complaints.push(`a request to ${url}`);
    });
  }

  /** Opens the page as somebody who has no session. */
  async open(): Promise<void> {
    await this.page.context().clearCookies();
    await this.page.goto(`${this.#address()}/ext/webui/`);
  }

  async logIn(credentials: Credentials, to = ''): Promise<void> {
    const { page } = this;
    await page.context().clearCookies();
    // From elsewhere: another fragment of the same address would not load the page.
    if (page.url() !== 'about:blank') await page.goto('about:blank');
    await page.goto(`${this.#address()}/ext/webui/${to === '' ? '' : `#/${to}`}`);
    await this.fillIn(credentials);
    await page.getByRole('navigation').getByRole('link').first().waitFor();
    if (to === '') await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  }

  async fillIn({ agent_id, agent_secret }: Credentials): Promise<void> {
    await this.page.getByLabel('Agent ID').fill(agent_id);
    await this.page.getByLabel('Secret').fill(agent_secret);
    await this.page.getByRole('button', { name: 'Log in' }).click();
  }

  /** Goes to the view at `#/<view>`. */
  async goTo(view: string): Promise<void> {
    const to = JSON.stringify(`#/${view}`);
    // Waits until the page has noticed, so that the test sees nothing of the previous view.
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
    await page.getByLabel('Title').fill(title);
    await page.getByLabel('Pipeline (JSON)').fill(JSON.stringify({ pipeline }));
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 1, name: title }).waitFor();
  }

  /** Enters a reason in the open dialog, and presses a button of it. */
  async answer(action: string, reason = ''): Promise<void> {
    const dialog = this.page.getByRole('dialog');
    if (reason !== '') await dialog.getByLabel('Why').fill(reason);
    await dialog.getByRole('button', { name: action, exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  }

  /** Expects no serious finding, in the light and the dark scheme. */
  async expectAccessible(): Promise<void> {
    const { page } = this;
    await page.evaluate(axe);
    for (const [colorScheme, rules] of schemes) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      const findings = JSON.parse(await page.evaluate<string>(look(rules))) as AxeFinding[];
      const grave = findings.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      expect(grave, `${page.url()} ${colorScheme}`).to.deep.equal([]);
    }
  }

  /** The width of the document. Pixels. */
  width(): Promise<number> {
    return this.page.evaluate<number>('document.documentElement.scrollWidth');
  }
}

/**
 * Called inside a `describe`: one browser for its tests, and a page for each. Skips them without a browser.
 * @param options of each page: its time zone, for instance
 */
export function useBrowser(
  address: () => string,
  options: BrowserContextOptions = {},
): () => Browsing {
  let browser: Browser | undefined;
  let browsing: Browsing | undefined;
  before(async function () {
    const executablePath = requiredProgram(this, 'chromium');
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  });
  after(() => browser?.close());
  beforeEach(async () => {
    if (browser === undefined) throw new Error('there is no browser');
    browsing = new Browsing(await browser.newPage(options), address);
  });
  afterEach(() => browsing?.page.close());
  return () => {
    if (browsing === undefined) throw new Error('there is no page');
    return browsing;
  };
}
