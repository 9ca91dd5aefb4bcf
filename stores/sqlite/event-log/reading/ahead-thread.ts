import { getPriority, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import type { AheadOrder, FromAhead, ToAhead } from './ahead-protocol.ts';
import { LogRows } from './log-rows.ts';
import { openLogForReading } from '../schema.ts';

/** Niceness, of 0 to 19. */
const GIVES_WAY = 5;

/** The entry of a thread that reads pages of the log while another folds those before them. */
function readAhead({ file, until, prefixes, share }: AheadOrder): void {
  const database = openLogForReading(file);
  const rows = new LogRows(database);
  let position = 0;
  let ended = false;
  const end = (): void => {
    ended = true;
    database.close();
    parentPort?.close();
  };
  parentPort?.on('message', (message: ToAhead) => {
    // A closed port still hands over what was on its way.
    if (ended) return;
    if (message.kind === 'end') {
      end();
      return;
    }
    position = message.after ?? position;
    for (let left = message.pages; left > 0; left -= 1) {
      const page = rows.page(position, { prefixes, share });
      position = page.upTo;
      parentPort?.postMessage({ kind: 'page', page } satisfies FromAhead);
      if (position < until) continue;
      end();
      return;
    }
  });
  parentPort?.postMessage({ kind: 'ready' } satisfies FromAhead);
}

/**
 * Lets others go first: whoever waits for an answer of the service shall not wait for this. On Linux the priority is the
 * calling thread's own; elsewhere it would be that of the whole process.
 */
function giveWay(): void {
  if (process.platform === 'linux') setPriority(Math.max(getPriority(), GIVES_WAY));
}

giveWay();
readAhead(workerData as AheadOrder);
