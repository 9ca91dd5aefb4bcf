import type { Browser, Page } from 'playwright-core';
import type { Credentials } from '../../test/support/service-process.ts';

/**
 * A slow mobile connection, like the preset of browsers' developer tools: bytes per second, and latency in
 * milliseconds.
 */
const slowLine = {
  offline: false,
  latency: 300,
  downloadThroughput: 1_600_000 / 8,
  uploadThroughput: 750_000 / 8,
};

/**
 * Measures the time over a slow connection until the overview shows its figures, for a person who is logged in and
 * whose browser has an empty cache. In milliseconds.
 */
export async function firstLoadMs(
  browser: Browser,
  address: string,
  { agent_id, agent_secret }: Credentials,
): Promise<number> {
  const url = `${address}/ext/webui/`;
  const before = await browser.newContext();
  try {
    const page = await before.newPage();
    await page.goto(url);
    await page.getByLabel('Agent ID').fill(agent_id);
    await page.getByLabel('Secret').fill(agent_secret);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.locator('.tile strong').first().waitFor();
    const context = await browser.newContext({ storageState: await before.storageState() });
    try {
      return await loadMs(await context.newPage(), url);
    } finally {
      await context.close();
    }
  } finally {
    await before.close();
  }
}

async function loadMs(page: Page, url: string): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  await session.send('Network.emulateNetworkConditions', slowLine);
  const begun = performance.now();
  await page.goto(url);
  await page.locator('.tile strong').first().waitFor();
  return performance.now() - begun;
}
