import { expect } from 'chai';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** Longer than the lease of an extension's turn, on a busy machine. */
const TAKEN_OVER = { limitMs: 40_000 };

describe("an extension's work in one process at a time", function () {
  this.timeout(120_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();

  async function writeExtension(): Promise<string> {
    const folder = join(directory(), 'leased');
    await mkdir(folder);
    const manifest = {
      id: 'leased',
      name: 'Leased',
      version: '1.0.0',
      module: 'leased.mjs',
      capabilities: ['EVENTS_SUB', 'BACKGROUND_TASKS'],
    };
    await writeFile(join(folder, 'extension.json'), JSON.stringify(manifest));
    const module = `import { appendFileSync } from 'node:fs';
    export async function setup({ events, background, config }) {
      const note = (what) => appendFileSync(config.file, what + ' ' + process.pid + '\\n');
      await events.subscribe('orders.#', ({ data }) => note('order ' + data.n));
      await background.startTask('work', async (signal) => {
        note('begun');
        await new Promise((ended) => signal.addEventListener('abort', ended));
      });
    }`;
    await writeFile(join(folder, 'leased.mjs'), module);
    return folder;
  }

  it('continues in another after the last handled event when its process is killed', async () => {
    const file = join(directory(), 'notes');
    await writeFile(file, '');
    const data = join(directory(), 'data');
    const settings = {
      SVC_DATA_DIR: data,
      SVC_EXT_PATHS: await writeExtension(),
      SVC_EXT_LEASED_FILE: file,
    };
    const notes = async ({ pid }: ServiceProcess): Promise<readonly string[]> => {
      const lines = (await readFile(file, 'utf8')).split('\n');
      return lines
        .filter((line) => line.endsWith(` ${pid}`))
        .map((line) => line.replace(/ \d+$/, ''));
    };
    const first = await ServiceProcess.start(settings);
    await eventually(
      async () => void expect(await notes(first)).to.deep.equal(['begun']),
      TAKEN_OVER,
    );
    const second = await ServiceProcess.start(settings);
    const credentials = credentialsIn(data);
    const client = second.client(await signIn(second.client(), credentials));
    const order = async (n: number): Promise<void> => {
      const event = { topic: 'orders.new', payload: { n }, source_agent_id: credentials.agent_id };
      expect((await client.post('/events', event)).status).to.equal(202);
    };
    const handled: string[] = ['begun'];
    for (const n of [1, 2, 3]) {
      await order(n);
      handled.push(`order ${n}`);
      await eventually(
        async () => void expect(await notes(first)).to.deep.equal(handled),
        TAKEN_OVER,
      );
    }
    expect(await notes(second)).to.deep.equal([]);
    await first.kill();
    for (const n of [4, 5, 6]) await order(n);
    await eventually(async () => {
      const taken = await notes(second);
      expect(taken).to.include('begun');
      // The last one is repeated, because the process died between handling and confirming it.
      const orders = taken.filter((each) => each !== 'begun' && each !== 'order 3');
      expect(orders).to.deep.equal(['order 4', 'order 5', 'order 6']);
    }, TAKEN_OVER);
    expect(await notes(first)).to.deep.equal(handled);
    const lease = 'lease_held{lease="extension leased"} 1';
    expect((await client.get('/ext/observability/metrics')).text).to.include(lease);
    expect(await second.terminate()).to.deep.equal({ code: 0, signal: null });
  });
});
