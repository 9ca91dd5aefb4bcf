import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startBareServer } from './http-bare.ts';
import { withHttpService, type HttpService } from './http-service.ts';
import { Side, type SideOfLoad } from './http-side.ts';

const CONNECTIONS = 50;
/** Tasks that are read, one after the other by each connection; each has a run behind it. */
const TASKS = 100;
/** Ours and the other take turns, so that a slow moment of the machine hits both. */
const TURNS = 3;

/** Reading one task, beside a bare route that answers the same bytes. */
export interface HttpGetBenchmark {
  readonly ours: SideOfLoad;
  readonly bare: SideOfLoad;
}

/** @param seconds of each turn; there are three for each of the two, after one that does not count */
export async function benchHttpGet(seconds: number): Promise<HttpGetBenchmark> {
  return withHttpService(async (service, directory) => {
    const answers = await makeTasks(service);
    const bare = await startBareServer({ answers, file: join(directory, 'bare.db') });
    const requests = Object.keys(answers).map((id) => ({ path: `/tasks/${id}` }));
    const { headers } = service;
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

/** @returns what the service answers of each task, by its id */
async function makeTasks({ client, agentId }: HttpService): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (let index = 0; index < TASKS; index += 1) {
    const { data: task } = await client.tasks.create({
      title: `report ${index}`,
      description: 'makes a report and sends it',
      schedule_kind: 'cron',
      schedule_expr: '0 3 * * *',
      payload: { pipeline: [{ id: 'made', uses: 'echo', with: { text: 'a report' } }] },
      created_by: agentId,
    });
    const { position } = await client.tasks.runNow(task.id, { wait: 60 });
    const after = position === null ? {} : { after: position };
    await client.runs.latest(task.id, after);
    answers[task.id] = JSON.stringify((await client.tasks.get(task.id, after)).data);
  }
  return answers;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const seconds = Number(process.argv[2] ?? 4);
  process.stdout.write(`${JSON.stringify(await benchHttpGet(seconds), null, 2)}\n`);
}
