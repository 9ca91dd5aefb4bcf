import type { Page } from 'playwright-core';
import type { Credentials } from '../../test/support/service-process.ts';

/** Opens the web page and logs in. Resolves once the rail with the views is there. */
export async function logIn(
  page: Page,
  address: string,
  { agent_id, agent_secret }: Credentials,
): Promise<void> {
  await page.goto(`${address}/ext/webui/`);
  await page.getByLabel('Agent ID').fill(agent_id);
  await page.getByLabel('Secret').fill(agent_secret);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('navigation').getByRole('link').first().waitFor();
}
