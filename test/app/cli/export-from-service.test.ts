import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { plainTask } from '../../api/plain-task.ts';
import { useRunningApi } from '../../support/running-api.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { svc, type Called } from './command-line.ts';

describe('svc export --url', () => {
  const api = useRunningApi();
  let directory: TemporaryDirectory;
  let taskId = '';

  before(async () => {
    directory = await makeTemporaryDirectory();
    const { admin } = api();
    taskId = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
    for (let n = 0; n < 3; n += 1) await admin.client.post(`/tasks/${taskId}/run_now`);
  });
  after(() => directory.remove());

  const env = (token = api().admin.client.token): Record<string, string> => ({
    SVC_TOKEN: String(token),
  });
  const called = (...words: string[]): Promise<Called> =>
    svc(['export', '--url', api().url, '--format', ...words], { env: env() });

  it('writes the rows of a service, without access to its store', async () => {
    const runs = await called('ndjson', '--of', 'runs', '--state', 'queued');
    expect(runs.code, runs.err).to.equal(0);
    expect(runs.out.trimEnd().split('\n')).to.have.lengthOf(3);
    expect(runs.out).to.equal((await api().admin.client.get('/runs/export')).text);
    expect(runs.err).to.contain('3 runs');
    const types = ['--type', 'TaskCreated', '--type', 'RunRequested'];
    const events = await called(
      'csv',
      '--task',
      taskId,
      '--kind',
      'task',
      '--kind',
      'run',
      ...types,
    );
    expect(events.out.trimEnd().split('\r\n')).to.have.lengthOf(1 + 1 + 3);
    expect(events.out).to.not.contain('end_of_export');
    const first = (JSON.parse(runs.out.split('\n')[0] ?? '') as { id: string }).id;
    const rest = await called('ndjson', '--of', 'runs', '--cursor', first);
    expect(rest.out.trimEnd().split('\n')).to.have.lengthOf(2);
    expect((await called('ndjson', '--of', 'runs', '--state', 'failed')).out).to.equal('');
  });

  it('writes a complete file', async () => {
    const file = join(directory.path, 'runs.csv');
    const written = await called('csv', '--of', 'runs', '--output', file);
    expect([written.code, written.out]).to.deep.equal([0, '']);
    expect(written.err).to.contain(`3 runs to ${file}`);
    expect(readFileSync(file, 'utf8').split('\r\n')).to.have.lengthOf(1 + 3 + 1);
    expect((await called('csv', '--of', 'runs', '--output', file)).code).to.equal(5);
  });

  it('uses SVC_URL if no store is named', async () => {
    const words = ['export', '--format', 'ndjson', '--of', 'runs'];
    const found = await svc(words, { env: { ...env(), SVC_URL: api().url } });
    expect(found.out.trimEnd().split('\n')).to.have.lengthOf(3);
    const store = { SVC_DATA_DIR: join(directory.path, 'nowhere') };
    expect((await svc(words, { env: { ...env(), ...store, SVC_URL: api().url } })).code).to.equal(
      2,
    );
  });

  it('leaves no file if the service rejects the request', async () => {
    const { client } = await api().signIn([]);
    const file = join(directory.path, 'refused.csv');
    const words = ['export', '--url', api().url, '--format', 'csv', '--output', file];
    expect((await svc(words, { env: env(client.token) })).code).to.equal(4);
    expect((await svc([...words, '--since', 'soon'], { env: env() })).code).to.equal(2);
    expect((await svc([...words, '--type', 'RunFaild'], { env: env() })).code).to.equal(2);
    expect(readdirSync(directory.path).filter((name) => name.startsWith('refused'))).to.be.empty;
  });

  it('rejects incompatible options', async () => {
    for (const words of [
      ['export', directory.path, '--url', api().url],
      ['export', '--url', api().url, '--format', 'csv', '--data-dir', directory.path],
      ['export', '--format', 'csv', '--cursor', taskId, '--data-dir', directory.path],
      ['export', '--url', api().url, '--format', 'csv', '--state', 'failed'],
    ]) {
      expect((await svc(words, { env: env() })).code, words.join(' ')).to.equal(2);
    }
  });

  describe('with rows that end too soon', () => {
    let server: Server | undefined;
    afterEach(() => {
      server?.close();
      server?.closeAllConnections();
    });

    async function exportFrom(listener: RequestListener, ...more: string[]): Promise<Called> {
      server = createServer(listener);
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
      const words = ['export', '--url', url, '--format', 'ndjson', '--of', 'runs', ...more];
      return svc(words, { env: env() });
    }
    const dying: RequestListener = (_request, response) => {
      response.write('{"id":"1"}\n{"id":"2"}\n{"id"', () => response.destroy());
    };
    /** As behind a proxy that hides that its own connection was lost. */
    const hidden: RequestListener = (_request, response) => {
      response.end('{"id":"1"}\n{"id":"2"}\n');
    };

    for (const [name, listener] of [
      ['the service dies', dying],
      ['a proxy hides that the service died', hidden],
    ] as const) {
      it(`fails and leaves no file if ${name}`, async () => {
        const file = join(directory.path, 'broken.ndjson');
        const broken = await exportFrom(listener, '--output', file);
        expect([broken.code, broken.out]).to.deep.equal([6, '']);
        expect(broken.err).to.contain('ended too soon').and.contain('--cursor');
        expect(existsSync(file)).to.equal(false);
        expect(readdirSync(directory.path).filter((each) => each.startsWith('broken'))).to.be.empty;
      });
    }

    it('writes the received rows to standard output', async () => {
      const broken = await exportFrom(hidden);
      expect([broken.code, broken.out]).to.deep.equal([6, '{"id":"1"}\n{"id":"2"}\n']);
    });
  });
});
