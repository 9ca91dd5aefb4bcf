import { expect } from 'chai';
import { useRunningApi } from '../../../support/running-api.ts';
import { eventually, found } from '../../../support/signals.ts';
import { newTool, OpenJobs } from './open-jobs.ts';

describe('a silent worker', () => {
  const api = useRunningApi({ jobLeaseSeconds: 3 });

  it('loses its job to another one, with a new lease and the same idempotency key', async () => {
    const open = await OpenJobs.make(api());
    const tool = newTool();
    const [silent, other] = [await open.worker([tool]), await open.worker([tool])];
    const { runId } = await open.open({ tool });
    const first = await silent.job();
    const second = await other.job('?wait=20');
    expect(second.job_id).to.equal(first.job_id);
    expect(second.lease).to.not.equal(first.lease);
    expect(second.idempotency_key).to.equal(first.idempotency_key);
    expect(second.attempt).to.equal(first.attempt);
    for (const what of ['heartbeat', 'complete', 'fail'] as const) {
      const body = {
        heartbeat: { lease: first.lease },
        complete: { lease: first.lease, result: 'late' },
        fail: { lease: first.lease, error: 'late', retryable: false },
      }[what];
      expect((await silent.say(first, what, body)).status, what).to.equal(409);
    }
    const done = await other.say(second, 'complete', { lease: second.lease, result: 'fine' });
    expect(done.status, done.text).to.equal(200);
    const resumed = await open.eventsOf(runId, 'RunStepResumed');
    expect(resumed.map(({ result }) => result)).to.deep.equal(['fine']);
    expect(await api().metricsText()).to.contain('job_leases_lost_total 1');
  });
});

describe('a worker that sends heartbeats', () => {
  const api = useRunningApi({ jobLeaseSeconds: 5 });

  it('keeps its job beyond its first lease, up to the deadline of the try', async () => {
    const open = await OpenJobs.make(api());
    const tool = newTool();
    const worker = await open.worker([tool]);
    const { runId } = await open.open({ tool, timeoutSeconds: 6 });
    const job = await worker.job();
    let beats = 0;
    await eventually(async () => {
      const beat = await worker.say(job, 'heartbeat', { lease: job.lease });
      if (beat.status === 200) beats += 1;
      return beat.status === 409;
    });
    expect(beats).to.be.greaterThan(1);
    const resumed = await found(async () => {
      const [event] = await open.eventsOf(runId, 'RunStepResumed');
      return event;
    });
    expect(resumed).to.deep.include({
      by: { kind: 'timeout' },
      error: 'timed out after 6 s (timeout_seconds)',
      retryable: true,
    });
  });
});
