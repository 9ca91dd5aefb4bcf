import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startBareServer } from './http-bare.ts';
import { Side, type SideOfLoad } from './http-side.ts';
import { withHttpService } from './http-service.ts';

const CONNECTIONS = 50;
const TURNS = 2;

/** Creating a task, beside a bare route that makes what it is sent durable by one insert. */
export interface HttpPostBenchmark {
  readonly ours: SideOfLoad;
  readonly bare: SideOfLoad;
}

/** @param seconds of each turn; there are two for each of the two, after one that does not count */
export async function benchHttpPost(seconds: number): Promise<HttpPostBenchmark> {
  return withHttpService(async (service, directory) => {
    const bare = await startBareServer({ answers: {}, file: join(directory, 'bare.db') });
    const body = JSON.stringify({
      title: 'a report',
      description: 'makes a report and sends it',
      schedule_kind: 'cron',
      schedule_expr: '0 3 * * *',
      payload: { pipeline: [{ id: 'made', uses: 'echo', with: { text: 'a report' } }] },
      created_by: service.agentId,
    });
    const headers = { ...service.headers, 'content-type': 'application/json' };
    const requests = [{ method: 'POST', path: '/tasks', body }] as const;
    const sides = [new Side(bare), new Side(service.process)] as const;
    try {
      for (let turn = 0; turn <= TURNS; turn += 1) {
        for (const side of sides) {
          await side.take({ connections: CONNECTIONS, seconds, headers, requests }, turn > 0);
        }
      }
      const [theirs, ours] = sides;
      return { ours: ours.sum(), bare: theirs.sum() };
    } finally {
      await bare.stop();
    }
  });
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const seconds = Number(process.argv[2] ?? 4);
  process.stdout.write(`${JSON.stringify(await benchHttpPost(seconds), null, 2)}\n`);
}
