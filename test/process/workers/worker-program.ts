// A worker for tests, in a process of its own. It says what it does on standard output, a line each.

import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { JobInterrupted, Worker, type Job } from '../../../api/worker/worker.ts';

const [, , url = '', agentId = '', agentSecret = ''] = process.argv;
const say = (line: string): boolean => process.stdout.write(`${line}\n`);
const schema = { type: 'object', properties: { until: { type: 'string' } }, required: ['until'] };

/** Ends once a file exists. */
async function hold(until: string, job: Job, isStubborn: boolean): Promise<unknown> {
  say(`begun ${job.idempotencyKey} ${job.attempt}`);
  job.signal.addEventListener('abort', () => {
    const { reason } = job.signal as { readonly reason: unknown };
    say(`aborted ${reason instanceof JobInterrupted ? reason.why : String(reason)}`);
  });
  while (!existsSync(until)) {
    await pause(10);
    if (!isStubborn) job.signal.throwIfAborted();
  }
  say('done');
  return { pid: process.pid };
}

const worker = new Worker({
  url,
  agentId,
  agentSecret,
  handleSignals: true,
  tools: {
    'test.hold': {
      description: 'Ends once a file exists, or when it is interrupted',
      schema,
      run: ({ until }, job) => hold(String(until), job, false),
    },
    'test.stubborn': {
      description: 'Ends once a file exists, whatever happens',
      schema,
      run: ({ until }, job) => hold(String(until), job, true),
    },
  },
});
await worker.start();
say(`started ${worker.id}`);
