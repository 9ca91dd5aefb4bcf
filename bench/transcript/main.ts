import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { newId } from '../../domain/ids.ts';
import { addRaw } from '../../test/app/archive/small-log.ts';
import type { ApiClient } from '../../test/support/api-client.ts';
import { projectRoot } from '../../test/support/project-root.ts';
import { ServiceProcess, credentialsIn, signIn } from '../../test/support/service-process.ts';
import { makeBenchFolder, onBenchExit } from '../bench-folder.ts';
import { fillByRunning } from './fill-by-running.ts';
import { Page } from './page.ts';
import { scenes, type Stage } from './scenes.ts';
import { Terminal } from './terminal.ts';

const { values } = parseArgs({
  options: {
    /** A kept folder; its store is used again. */
    folder: { type: 'string' },
    events: { type: 'string', default: '1000000' },
    out: { type: 'string', default: join(projectRoot, 'docs/tutorial/transcript.md') },
    /** Names of scenes; default: all. */
    scenes: { type: 'string' },
  },
});
const events = Number(values.events);
const folder =
  values.folder === undefined ? await makeBenchFolder('transcript') : resolve(values.folder);
mkdirSync(folder, { recursive: true });
const data = join(folder, 'data');
const isFilled = existsSync(join(data, 'events.sqlite'));
for (const name of ['backup', 'restored', 'moved', 'other', 'again', 'events.ndjson', 'runs.csv']) {
  rmSync(join(folder, name), { recursive: true, force: true });
}

const service = await ServiceProcess.start({ SVC_DATA_DIR: data, SVC_RATE_LIMIT: '0' });
onBenchExit(() => service.signal('SIGKILL'));
try {
  const credentials = credentialsIn(data);
  const token = await signIn(service.client(), credentials);
  const admin = service.client(token);
  const begun = performance.now();
  if (!isFilled) await fillByRunning(admin, credentials.agent_id, events);
  // The views of an older release's store are rebuilt first.
  await untilBuilt(admin);
  const page = new Page(introduction(isFilled ? null : (performance.now() - begun) / 1000));
  // A token, so that not every command starts a session in the audit.
  const env = { SVC_URL: service.address, SVC_TOKEN: token, SVC_DATA_DIR: 'data' };
  const terminal = new Terminal(folder, env);
  const stage: Stage = {
    page,
    admin,
    report: await reportOf(admin),
    async type(command) {
      const typed = await terminal.type(command);
      console.log(
        `${typed.seconds.toFixed(2).padStart(7)} s  ${typed.code}  ${command}\n${typed.output}`,
      );
      return typed;
    },
    async onRestored() {
      const restored = join(folder, 'restored');
      const other = ServiceProcess.begin({ SVC_DATA_DIR: restored, SVC_RATE_LIMIT: '0' });
      await other.listening(60_000);
      return { url: other.address, stop: async () => void (await other.terminate()) };
    },
    async poison() {
      const id = newId(Date.now());
      const metadata = JSON.stringify({ occurredAt: new Date().toISOString() });
      await addRaw(data, `run-${id}`, { type: 'RunStarted', data: '{"worker": "w', metadata });
      return id;
    },
  };
  const wanted = values.scenes?.split(',');
  for (const [name, scene] of Object.entries(scenes)) {
    if (wanted === undefined || wanted.includes(name)) await scene(stage);
  }
  writeFileSync(resolve(values.out), page.toString());
} finally {
  await service.terminate();
}
process.exit();

/** Resolves when every view is built and has caught up. */
async function untilBuilt(admin: ApiClient): Promise<void> {
  interface Shown {
    readonly version: number;
    readonly caught_up: boolean;
  }
  for (;;) {
    const { json } = await admin.get('/projections');
    const all = json['projections'] as readonly Shown[];
    if (all.every(({ version, caught_up }) => version > 0 && caught_up)) return;
    await pause(500);
  }
}

async function reportOf(admin: ApiClient): Promise<string> {
  return (await admin.get('/tasks?search=Nightly%20report')).textAt('items.0.id');
}

/** @param seconds that filling took; null for a kept store */
function introduction(seconds: number | null): string {
  const took = seconds === null ? '' : ` in ${Math.round(seconds)} seconds`;
  return `# A transcript

This page shows the commands for operators, analysts and auditors on a store of ${events.toLocaleString('en')} events. A running service wrote all of them${took}. The store has the tasks of the [ten questions](../how-to/analysis.md). For each of several thousand published orders, a hundred tasks have run. Commands that took longer than a second show their time, on a busy machine with two cores; [the benchmarks](../explanation/benchmarks.md) have exact figures. Long outputs are shortened.

\`npm run transcript\` makes this page again. It takes about ten minutes.`;
}
