import { expect } from 'chai';
import { ServiceProcess } from '../../support/service-process.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { useBrowser } from './webui-browser.ts';

describe('the page of the interface, /docs', function () {
  this.timeout(300_000);
  let directory: TemporaryDirectory;
  let service: ServiceProcess;

  before(async () => {
    directory = await makeTemporaryDirectory();
    service = await ServiceProcess.start({ SVC_DATA_DIR: directory.path });
  });

  after(async () => {
    await service.terminate();
    await directory.remove();
  });

  const browsing = useBrowser(() => service.address);

  it('shows the examples of an operation, without an error', async () => {
    const { page } = browsing();
    const errors: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') errors.push(message.text());
    });
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.goto(`${service.address}/docs#/tasks/createTask`);
    const operation = page.locator('#operations-tasks-createTask');
    const examples = operation.locator('.highlight-code');
    await examples.nth(1).waitFor({ timeout: 60_000 });
    expect(await examples.nth(0).textContent()).to.include('"uses": "http.request"');
    expect(await examples.nth(1).textContent()).to.include('"next_run_at"');
    expect(errors).to.deep.equal([]);
  });
});
