import { expect } from 'chai';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

const module = `import { execSync } from 'node:child_process';
function spin(until) { while (Date.now() < until); }
export function setup({ routes }) {
  routes.get('/asleep', (_request, response) => { execSync('sleep 5'); response.json({}); });
  routes.get('/later', async (_request, response) => {
    await new Promise((resolve) => setTimeout(resolve, 10));
    spin(Date.now() + 5_000);
    response.json({});
  });
  routes.get('/well-behaved', (_request, response) => response.json({}));
  routes.get('/for-ever', () => spin(Infinity));
}`;

describe('the watchdog of extensions', function () {
  this.timeout(120_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();

  async function extension(id: string): Promise<string> {
    const folder = join(directory(), 'extensions', id);
    await mkdir(folder, { recursive: true });
    const shared = { version: '1.0.0', module: 'own.mjs', capabilities: ['ROUTES'] };
    await writeFile(join(folder, 'extension.json'), JSON.stringify({ id, name: id, ...shared }));
    await writeFile(join(folder, 'own.mjs'), module);
    return folder;
  }

  it('names the extension that blocks the event loop, during and after the block', async () => {
    const folders = [await extension('blocker'), await extension('innocent')];
    const data = join(directory(), 'data');
    const service = await ServiceProcess.start({
      SVC_DATA_DIR: data,
      SVC_EXT_PATHS: folders.join(':'),
    });
    const client = service.client(await signIn(service.client(), credentialsIn(data)));
    const blocked = (): typeof service.log =>
      service.log.filter(({ message }) => message === 'an extension blocks the event loop');
    for (const [index, route] of ['later', 'asleep'].entries()) {
      await client.get('/ext/innocent/well-behaved');
      expect((await client.get(`/ext/blocker/${route}`)).status).to.equal(200);
      await eventually(async () => {
        const { json, text } = await client.get('/ext/status');
        const { blocker, innocent } = json['extensions'] as Record<string, { info: object }>;
        expect(blocker?.info, text).to.include({ faults: index + 1 });
        expect(JSON.stringify(blocker)).to.match(/blocked for \d+\.\d s by .*own\.mjs:\d+/);
        expect(innocent?.info).to.not.have.property('faults');
      });
    }
    // The log is written separately from the status, and may be later.
    await found(() => blocked()[1], { what: 'the second log line' });
    expect(blocked().map((line) => [line['extension'], line['where']])).to.deep.equal([
      ['blocker', 'spin (own.mjs:2)'],
      ['blocker', 'own.mjs:4'],
    ]);
    const metrics = await client.get('/ext/observability/metrics');
    expect(metrics.text).to.include('extension_blocked_total{extension="blocker"} 2\n');

    // After an endless block the process no longer responds, but the log names the extension.
    void client.get('/ext/blocker/for-ever').catch(() => {});
    const third = await found(() => blocked()[2], { what: 'the third log line' });
    expect(third['extension']).to.equal('blocker');
    await service.kill();
  });
});
