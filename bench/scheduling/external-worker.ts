// A worker in its own process. It prints a line for each job: its run, and when its function was called.

import { Worker } from '../../api/worker/worker.ts';

const [, , url = '', agentId = '', agentSecret = '', slots = '1'] = process.argv;

const worker = new Worker({
  url,
  agentId,
  agentSecret,
  slots: Number(slots),
  handleSignals: true,
  tools: {
    'bench.job': {
      description: 'Returns its arguments',
      schema: {},
      run(args, { runId }) {
        process.stdout.write(`${runId} ${Date.now()}\n`);
        return args;
      },
    },
  },
});
await worker.start();
process.stdout.write('started\n');
