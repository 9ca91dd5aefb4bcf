import { expect } from 'chai';
import type { ReceivedResponse } from '../../../support/api-client.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { found } from '../../../support/signals.ts';
import { newTool, OpenJobs, type GivenJob, type TestWorker } from './open-jobs.ts';

const MIB = 1_048_576;

/** All requests about a job that have a body, each with a body of the given size in bytes. */
const requestsOf = (
  worker: TestWorker,
  { job_id, lease }: GivenJob,
  bytes: number,
): readonly (() => Promise<ReceivedResponse>)[] => {
  const padded = (body: object, field: object): string => {
    const text = JSON.stringify({ ...body, ...field });
    return text.replace('~', 'x'.repeat(bytes - text.length + 1));
  };
  const send = (path: string, raw: string) => () =>
    worker.agent.client.send('POST', path, {
      raw,
      headers: { 'content-type': 'application/json' },
    });
  return [
    send(
      `/jobs/${job_id}/heartbeat`,
      padded({ lease }, { log: [{ level: 'info', message: 'm', data: '~' }] }),
    ),
    send(`/jobs/${job_id}/fail`, padded({ lease: 'another' }, { error: '~', retryable: true })),
    send(
      `/workers/${worker.id}/results`,
      padded({}, { results: [{ job_id, lease: 'another', result: '~' }] }),
    ),
    send(`/jobs/${job_id}/complete`, padded({ lease }, { result: '~' })),
  ];
};

for (const [kind, maxBodyBytes] of [
  ['smaller', 2048],
  ['larger', 4 * MIB],
] as const) {
  describe(`the body of a request about a job, if SVC_MAX_BODY_BYTES is ${kind}`, () => {
    const api = useRunningApi({ maxBodyBytes });
    let worker: TestWorker;
    let job: GivenJob;
    before(async () => {
      const open = await OpenJobs.make(api());
      const tool = newTool();
      worker = await open.worker([tool]);
      await open.open({ tool });
      job = await worker.job();
    });

    it('may not be larger than 1 MiB', async () => {
      for (const request of requestsOf(worker, job, MIB + 1)) {
        const answer = await request();
        expect(answer.status, answer.text.slice(0, 200)).to.equal(413);
        expect(answer.at('details.limit')).to.equal(MIB);
      }
    });

    it('may have 1 MiB', async () => {
      const answers: number[] = [];
      for (const request of requestsOf(worker, job, MIB)) answers.push((await request()).status);
      // An error has at most 100,000 characters.
      expect(answers).to.deep.equal([200, 400, 200, 200]);
    });
  });
}

describe('a service that is stopping', () => {
  const api = useRunningApi();

  it('responds to requests for jobs with 503, and says when to ask again', async () => {
    const open = await OpenJobs.make(api());
    const worker = await open.worker([newTool()]);
    const waiting = worker.poll('?wait=30');
    await found(() => (api().jobs.waiting > 0 ? true : undefined));
    api().stopping.abort();
    for (const answer of [await waiting, await worker.poll('?wait=30'), await worker.poll()]) {
      expect(answer.status, answer.text).to.equal(503);
      expect(answer.header('Retry-After')).to.equal('1');
      expect(answer.at('details.component')).to.equal('workers');
      expect(answer.at('message')).to.contain('stopping');
    }
  });
});
