import { randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { createClient } from '../../../../api/client/client.ts';
import { artifactOf, type Artifact } from '../../../../domain/artifacts/artifact.ts';
import { decorate } from '../../../../domain/decorate.ts';
import type { ArtifactStore } from '../../../../domain/artifacts/artifact-store.ts';
import { tokenHash } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import { MemoryArtifacts } from '../../../support/memory-artifacts.ts';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { newTool, OpenJobs } from '../workers/open-jobs.ts';
import { endedBy, waitingRun, type WaitingRun } from './waiting-run.ts';

const KIB = 1024;

describe('artifacts of runs over HTTP', () => {
  const api = useRunningApi();
  const large = { rows: 'ü'.repeat(200 * KIB) };
  const bytes = new TextEncoder().encode(JSON.stringify(large));
  const reference = artifactOf(bytes);

  const waiting = async (payload?: object): Promise<WaitingRun & { readonly token: string }> => {
    const token = randomBytes(32).toString('base64url');
    const waits_for = { kind: 'callback' as const, token_hashes: [tokenHash(token)] };
    return { token, ...(await waitingRun(api(), waits_for, payload)) };
  };
  const complete = (token: string, body: unknown): Promise<ReceivedResponse> =>
    api()
      .admin.client.as(null)
      .send('POST', `/callbacks/${token}`, {
        raw: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      });
  const resultIn = async (stream: string): Promise<unknown> => {
    const events = await api().store.readStream(stream);
    return events.flatMap((event) =>
      event.type === 'RunStepResumed' ? [event.data.result] : [],
    )[0];
  };
  const get = async (run: string, artifact: string): Promise<ReceivedResponse> =>
    api().admin.client.get(`/runs/${run}/artifacts/${artifact}?after=${await api().store.head()}`);

  /** Uses another store for some calls. */
  async function over<T>(store: ArtifactStore, work: () => Promise<T>): Promise<T> {
    const before = api().artifacts.store;
    Object.assign(api().artifacts, { store });
    try {
      return await work();
    } finally {
      Object.assign(api().artifacts, { store: before });
    }
  }

  describe('a large body of a callback', () => {
    it('becomes an artifact, which is read as it was sent', async () => {
      const { token, stream, run } = await waiting();
      expect((await complete(token, large)).status).to.equal(200);
      expect(await resultIn(stream)).to.deep.equal(reference);
      const read = await get(run, reference.artifact);
      expect(read.status).to.equal(200);
      expect(read.json).to.deep.equal(large);
      expect(read.headers).to.include({
        'content-type': 'application/json; charset=utf-8',
        'content-length': String(bytes.byteLength),
        etag: `"${reference.sha256}"`,
        'cache-control': 'no-store',
      });
    });

    it('holds no secret', async () => {
      const pipeline = [
        { id: 'pay', uses: 'http.request', with: { url: 'http://a/', body: '${secrets.TOKEN}' } },
      ];
      const { token, stream, run } = await waiting({ pipeline });
      await complete(token, { ...large, key: 'my hush-hush-7', url: `/${token}` });
      const { artifact } = (await resultIn(stream)) as Artifact;
      expect((await get(run, artifact)).json).to.deep.equal({
        ...large,
        key: 'my ***',
        url: '/***',
      });
    });

    it('is kept only while the step waits', async () => {
      const store = new MemoryArtifacts();
      const { token, stream, wait } = await waiting();
      await api().append(stream, [endedBy(wait, 'timeout')]);
      const late = await over(store, () => complete(token, large));
      expect(late.status).to.equal(409);
      expect(late.at('details')).to.include({ resumed_by: 'timeout' });
      expect(store.contents.size).to.equal(0);
    });

    it('is rejected while the store is unavailable, and accepted when it is sent again', async () => {
      const store = new MemoryArtifacts();
      store.failing = 1;
      const { token, stream } = await waiting();
      const refused = await over(store, () => complete(token, large));
      expect(refused.status).to.equal(503);
      expect(refused.at('details')).to.deep.equal({ component: 'artifact_store' });
      expect(refused.header('retry-after')).to.equal('1');
      expect(await resultIn(stream)).to.equal(undefined);
      expect((await over(store, () => complete(token, large))).status).to.equal(200);
      expect(await resultIn(stream)).to.deep.equal(reference);
    });

    it('may be as large as any other body', async () => {
      const { token } = await waiting();
      const answer = await complete(token, 'x'.repeat(1024 * KIB));
      expect(answer.status).to.equal(413);
    });
  });

  describe('a large result of a job', () => {
    const jobOf = async () => {
      const tool = newTool();
      const jobs = await OpenJobs.make(api());
      const worker = await jobs.worker([tool]);
      await jobs.open({ tool });
      const { job_id, lease, run_id } = await worker.job();
      return { worker, job: { job_id }, lease, run: run_id };
    };

    it('becomes an artifact', async () => {
      const { worker, job, lease, run } = await jobOf();
      const answer = await worker.say(job, 'complete', { lease, result: large });
      expect(answer.status, answer.text).to.equal(200);
      expect(await resultIn(streams.run(run))).to.deep.equal(reference);
      expect((await get(run, reference.artifact)).json).to.deep.equal(large);
    });

    it('can be sent again after the store was unavailable', async () => {
      const store = new MemoryArtifacts();
      store.failing = 1;
      const { worker, job, lease, run } = await jobOf();
      const send = () => over(store, () => worker.say(job, 'complete', { lease, result: large }));
      expect((await send()).status).to.equal(503);
      expect((await send()).status).to.equal(200);
      expect(store.namesOf(run)).to.deep.equal([reference.artifact]);
    });

    it('is not kept if the lease is not the present one', async () => {
      const store = new MemoryArtifacts();
      const { worker, job, run } = await jobOf();
      const answer = await over(store, () =>
        worker.say(job, 'complete', { lease: `${run}.x`, result: large }),
      );
      expect(answer.status).to.equal(409);
      expect(store.contents.size).to.equal(0);
    });
  });

  describe('a read of an artifact', () => {
    const kept = async (): Promise<string> => {
      const { token, run } = await waiting();
      await complete(token, large);
      return run;
    };

    it('works with the typed client, parsed and as it arrives', async () => {
      const run = await kept();
      const client = createClient({ baseUrl: api().url, token: api().admin.client.token ?? '' });
      expect((await client.runs.artifact(run, reference.artifact)).data).to.deep.equal(large);
      let text = '';
      for await (const part of client.exports.artifact(run, reference.artifact)) text += part;
      expect(JSON.parse(text)).to.deep.equal(large);
    });

    it('responds to HEAD without the content', async () => {
      const run = await kept();
      const answer = await api().admin.client.send(
        'HEAD',
        `/runs/${run}/artifacts/${reference.artifact}`,
      );
      expect(answer.status).to.equal(200);
      expect(answer.text).to.equal('');
      expect(answer.headers['content-length']).to.equal(String(bytes.byteLength));
    });

    it('needs the scope runs:read', async () => {
      const run = await kept();
      const { client } = await api().signIn(['tasks:read']);
      const answer = await client.get(`/runs/${run}/artifacts/${reference.artifact}`);
      expect(answer.status).to.equal(403);
    });

    it('finds nothing for another run, an unknown run or another name', async () => {
      const run = await kept();
      const other = await waiting();
      const answers = [
        [await get(other.run, reference.artifact), 'artifact', reference.artifact],
        [await get(run, '0'.repeat(64)), 'artifact', '0'.repeat(64)],
      ] as const;
      for (const [answer, resource, id] of answers) {
        expect(answer.status).to.equal(404);
        expect(answer.at('details')).to.deep.equal({ resource, id });
      }
      const unknown = randomUUID();
      expect((await get(unknown, reference.artifact)).at('details')).to.deep.equal({
        resource: 'run',
        id: unknown,
      });
    });

    const hostile = [
      '..%2F..%2F..%2Fevents.sqlite',
      '%2e%2e',
      '%2Fetc%2Fpasswd',
      '..%5C..%5Cx',
      'x%00.json',
      'A'.repeat(64),
      `${'0'.repeat(64)}.json`,
      'x'.repeat(5_000),
    ];
    for (const name of hostile) {
      it(`finds nothing under the name ${name.slice(0, 40)}`, async () => {
        const run = await kept();
        const answer = await api().admin.client.get(`/runs/${run}/artifacts/${name}`);
        expect(answer.status).to.equal(404);
      });
    }

    it('reports a damaged artifact instead of sending it', async () => {
      const { run } = await waiting();
      const name = '1'.repeat(64);
      await api().artifacts.store.put(run, name, bytes);
      const answer = await get(run, name);
      expect(answer.status).to.equal(500);
      expect(answer.textAt('message')).to.equal(
        `artifact ${name} of run ${run} is damaged, as its content has another SHA-256: restore it from a backup`,
      );
      expect(answer.at('details')).to.include({ error_type: 'DAMAGED' });
    });

    it('is refused with 503 while the store is unavailable', async () => {
      const run = await kept();
      const store = new MemoryArtifacts();
      store.failing = 1;
      const answer = await over(store, () => get(run, reference.artifact));
      expect(answer.status).to.equal(503);
      expect(api().logged.join('\n')).to.include('could not reach the store of the test: wait');
    });

    it('breaks off if the store fails after the first bytes', async () => {
      const run = await kept();
      const { store } = api().artifacts;
      let opened = 0;
      const failing = decorate(store, {
        async open(runId: string, artifact: string) {
          const whole = await store.open(runId, artifact);
          opened += 1;
          if (whole === null || opened === 1) return whole;
          const chunks = (async function* () {
            for await (const chunk of whole.chunks) {
              yield chunk.subarray(0, 1000);
              throw new Error('the disk is gone');
            }
          })();
          return { ...whole, chunks };
        },
      });
      const error: unknown = await over(failing, () => get(run, reference.artifact)).then(
        ({ status }) => status,
        (fault: unknown) => fault,
      );
      expect(error).to.be.an.instanceOf(Error);
    });
  });

  it('of a failed run also belong to its retry', async () => {
    const { client } = api().admin;
    const pipeline = [
      { id: 'big', uses: 'echo' },
      { id: 'no', uses: 'fail', with: { message: 'no' } },
    ];
    const { run, stream } = await waiting({ pipeline });
    await api().artifacts.store.put(run, reference.artifact, bytes);
    const at = '2026-03-01T09:00:00.000Z';
    const end = { error: null, started_at: at, finished_at: at, attempt: 1, log: [] };
    const steps = [{ ...end, step: 'big', status: 'succeeded' as const, result: reference }];
    const { task_id } = (await client.get(`/runs/${run}`)).json as { readonly task_id: string };
    const failed = {
      task_id,
      started_at: at,
      attempt: 1,
      error: 'no',
      step: 'no',
      steps,
      output: {},
    };
    await api().append(stream, [{ type: 'RunFailed', data: failed }]);
    const retried = await client.post(`/runs/${run}/retry`);
    expect(retried.status, retried.text).to.equal(200);
    const retry = retried.textAt('details.run_id');
    expect((await get(retry, reference.artifact)).json).to.deep.equal(large);
  });
});
