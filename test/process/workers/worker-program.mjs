// A worker for tests, in its own process. It reports what it does on standard output, one line each. Plain JavaScript
// with the built worker, because compiling them would take longer than most jobs.

import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { JobInterruptedError, Worker } from '../../../dist/api/worker/worker.js';

const [, , url = '', agentId = '', agentSecret = ''] = process.argv;
const say = (line) => process.stdout.write(`${line}\n`);
const schema = { type: 'object', properties: { until: { type: 'string' } }, required: ['until'] };

/** Ends once a file exists. */
async function hold(until, job, isStubborn) {
  say(`begun ${job.idempotencyKey} ${job.attempt}`);
  job.signal.addEventListener('abort', () => {
    const { reason } = job.signal;
    say(`aborted ${reason instanceof JobInterruptedError ? reason.why : String(reason)}`);
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
