import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { artifactOf } from '../../../domain/artifacts/artifact.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { decorate } from '../../../domain/decorate.ts';
import { newId } from '../../../domain/ids.ts';
import { plainTask } from '../../api/plain-task.ts';
import { request } from '../../projections/recorded.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc, type Called } from './command-line.ts';

describe('svc runs artifact', () => {
  const api = useRunningApi();
  const directory = useTemporaryDirectory();
  const text = JSON.stringify({ rows: 'é'.repeat(300_000) });
  const content = new TextEncoder().encode(text);
  const { artifact } = artifactOf(content);

  const call = (...words: readonly string[]): Promise<Called> =>
    svc(['runs', 'artifact', ...words], {
      env: { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' },
    });
  const runWith = async (name: string): Promise<string> => {
    const { client, id: created_by } = api().admin;
    const task_id = (await client.post('/tasks', plainTask(created_by))).textAt('id');
    const id = newId(Date.parse('2026-03-01T08:00:00Z'));
    const requested: DomainEvent = { type: 'RunRequested', data: request({ task_id, created_by }) };
    await api().append(`run-${id}`, [requested]);
    await client.get(`/runs/${id}?after=${await api().store.head()}`);
    await api().artifacts.store.put(id, name, content);
    return id;
  };

  it('prints the JSON', async () => {
    const { code, out } = await call(await runWith(artifact), artifact);
    expect(code).to.equal(0);
    expect(out).to.equal(`${text}\n`);
  });

  it('saves it in a new file', async () => {
    const file = join(directory(), 'rows.json');
    const run = await runWith(artifact);
    const { code, out } = await call(run, artifact, '--output', file);
    expect([code, out]).to.deep.equal([0, '']);
    expect(readFileSync(file, 'utf8')).to.equal(text);
    const again = await call(run, artifact, '--output', file);
    expect(again.code).to.not.equal(0);
    expect(again.err).to.include('is there already');
  });

  it('leaves no file if the artifact is missing or damaged', async () => {
    const file = join(directory(), 'none.json');
    const unknown = await call(await runWith(artifact), '0'.repeat(64), '--output', file);
    expect(unknown.code).to.equal(3);
    const name = '1'.repeat(64);
    const damaged = await call(await runWith(name), name, '--output', file);
    expect(damaged.code).to.equal(1);
    expect(damaged.err).to.include('is damaged');
    expect(existsSync(file)).to.equal(false);
  });

  it('notices a change in transit', async () => {
    const run = await runWith(artifact);
    const { store } = api().artifacts;
    let opened = 0;
    const changing = decorate(store, {
      async open(...asked: Parameters<typeof store.open>) {
        const whole = await store.open(...asked);
        opened += 1;
        if (whole === null || opened === 1) return whole;
        const chunks = (async function* () {
          for await (const chunk of whole.chunks)
            yield chunk.map((byte) => (byte === 114 ? 82 : byte));
        })();
        return { ...whole, chunks };
      },
    });
    Object.assign(api().artifacts, { store: changing });
    const { code, err } = await call(run, artifact, '--output', join(directory(), 'changed.json'));
    Object.assign(api().artifacts, { store });
    expect(code).to.equal(1);
    expect(err).to.include('damaged in transit');
    expect(existsSync(join(directory(), 'changed.json'))).to.equal(false);
  });
});
