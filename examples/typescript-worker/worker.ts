// A worker, whole. docs/how-to/typescript-worker.md says how to start it and use its tools.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { PermanentError, Worker } from 'task-scheduling-service/worker';

/** The arguments, as the schemas below describe them. */
type Email = { readonly to: string; readonly subject: string; readonly text?: string };
type Rows = { readonly rows: number };

const { SVC_URL = 'http://localhost:8080', OUTBOX = 'outbox' } = process.env;
const { SVC_AGENT_ID: agentId = '', SVC_AGENT_SECRET: agentSecret = '' } = process.env;

const worker = new Worker({
  url: SVC_URL,
  agentId,
  agentSecret,
  slots: 20,
  handleSignals: true,
  tools: {
    // {"uses": "emails.send", "with": {"to": "ada@example.com", "subject": "Hello"}}
    'emails.send': {
      description: 'Sends an email',
      schema: {
        type: 'object',
        properties: {
          to: { type: 'string', minLength: 1 },
          subject: { type: 'string' },
          text: { type: 'string' },
        },
        required: ['to', 'subject'],
        additionalProperties: false,
      },
      async run({ to, subject, text = '' }: Email, job) {
        if (!to.includes('@')) throw new PermanentError(`${to} is not an address`);
        // "Sends" it. The name of the file is the same whenever this job is done again, so nobody gets two emails.
        const file = `${encodeURIComponent(job.idempotencyKey)}.txt`;
        await mkdir(OUTBOX, { recursive: true });
        await writeFile(join(OUTBOX, file), `To: ${to}\nSubject: ${subject}\n\n${text}\n`);
        job.log(`sent to ${to}`);
        return { file };
      },
    },

    // {"uses": "rows.count", "with": {"rows": 100}, "timeout_seconds": 600}
    'rows.count': {
      description: 'Counts rows, ten a second',
      schema: {
        type: 'object',
        properties: { rows: { type: 'integer', minimum: 1 } },
        required: ['rows'],
        additionalProperties: false,
      },
      async run({ rows }: Rows, { progress, signal }) {
        for (let counted = 1; counted <= rows; counted += 1) {
          // Ends at once if the run is canceled.
          await pause(100, undefined, { signal });
          progress(counted / rows);
        }
        return { counted: rows };
      },
    },
  },
});

await worker.start();
