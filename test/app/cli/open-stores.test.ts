import { expect } from 'chai';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifySecret } from '../../../api/access/secrets.ts';
import { SystemClock } from '../../../app/clock.ts';
import { agentFold, requireAgent } from '../../../domain/agents/agent.ts';
import { registerAgentCommand } from '../../../domain/agents/agent-registration.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import { load, type CommandContext } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import {
  cancelTaskCommand,
  createTaskCommand,
  pauseTaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import { silent } from '../../../observability/telemetry.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { createProjector } from '../../../projections/projector/projector.ts';
import type { Projection, ReadModel } from '../../../projections/read-model.ts';
import { tasksProjection } from '../../../projections/views/tasks.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { definition } from '../../projections/recorded.ts';
import { Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc } from './command-line.ts';

const NOW = Date.parse('2026-06-01T00:30:00Z');

/** The machine's time, frozen. */
class StandingClock extends SystemClock {
  override now(): number {
    return NOW;
  }
}
const clock = new StandingClock();

describe('the command line directly on the stores', () => {
  const directory = useTemporaryDirectory();
  let stores: { readonly store: EventStore; readonly readModel: ReadModel };

  beforeEach(async () => {
    const where = { directory: directory(), telemetry: silent };
    stores = {
      store: await openSqliteEventStore({ ...where, codec: createEventCodec() }),
      readModel: await openSqliteReadModel(where),
    };
  });
  afterEach(async () => {
    await stores.readModel.close();
    await stores.store.close();
  });

  const env = (): Record<string, string> => ({ SVC_DATA_DIR: directory() });
  const context = (): CommandContext => {
    const commandId = newId(NOW);
    return { commandId, actor: 'test', source: 'test', correlationId: commandId, now: NOW };
  };
  const create = async (title: string, schedule_expr: string): Promise<string> => {
    const taskId = newId(NOW);
    const task = definition({ title, schedule_expr });
    await createTaskCommand({ store: stores.store, taskId, definition: task, context: context() });
    return taskId;
  };
  const command = (taskId: string) => ({
    store: stores.store,
    taskId,
    context: context(),
    mayChange: () => {},
  });

  /** Brings the views up to date with the log. */
  async function project(): Promise<void> {
    const projections = [dueProjection, tasksProjection] as unknown as readonly Projection[];
    const { store, readModel } = stores;
    const head = await store.head();
    const passed = new Signal<readonly [string, string]>('checkpoints');
    const projector = createProjector({
      store,
      readModel,
      projections,
      telemetry: silent,
      fence: 1,
      clock: new SystemClock(),
    });
    projector.onCheckpoint((name, position) => passed.send([name, position]));
    const stop = new AbortController();
    const running = projector.run(stop.signal);
    for (const { name } of projections) {
      await passed.wait(([of, position]) => of === name && position >= head);
    }
    stop.abort();
    await running;
  }

  const simulate = async (...words: string[]) => {
    const called = await svc(['simulate', ...words], { env: env(), clock, columns: 100 });
    expect(called.code, called.err).to.equal(0);
    return called;
  };

  it('simulates from the log without a view, and otherwise from the view and later events', async () => {
    const kept = await create('Hourly', '0 * * * *');
    const canceled = await create('Canceled', '* * * * *');
    const expected = {
      counted: 2,
      paused: 1,
      by_event: 0,
      exhausted: 0,
      unreadable: 0,
      overdue: 0,
    };
    const paused = await create('Paused', '* * * * *');
    await pauseTaskCommand(command(paused));
    const before = (await simulate('--days', '1', '--json')).json;
    expect(before['tasks']).to.deep.equal(expected);
    expect(before['total']).to.equal(24 + 1440);
    await project();
    expect((await simulate('--days', '1', '--json')).json['total']).to.equal(24 + 1440);
    await cancelTaskCommand(command(canceled));
    await pauseTaskCommand(command(kept));
    await create('After the view', '30 12 * * *');
    const after = (await simulate('--days', '2', '--json')).json;
    expect(after['tasks']).to.deep.equal({ ...expected, counted: 1, paused: 2 });
    expect(after['total']).to.equal(2);
  });

  it('shows a chart, a line for each day, and the tasks of the peaks', async () => {
    for (let n = 0; n < 3; n += 1) await create(`Noon ${n}`, '0 12 * * *');
    await create('Hourly', '0 * * * *');
    await project();
    const { out } = await simulate('--days', '3');
    expect(out).to.match(
      /^81 fires of 4 active tasks, 2026-06-01 00:30:00Z to 2026-06-04 00:30:00Z\n/,
    );
    expect(out).to.match(/^4 ┤ +█ +█ +█$/m);
    expect(out).to.match(/^ +06-01 +06-02 +06-03/m);
    expect(out).to.match(/^2026-06-02 +27 {2}▂▂▂▂▂▂▂▂▂▂▂▂█▂▂▂▂▂▂▂▂▂▂▂ {2}12:00 +4$/m);
    expect(out).to.match(
      /^2026-06-01 12:00Z +4 +3 {2}3 tasks, such as Noon 0 +at 12:00, every day, UTC$/m,
    );
    expect(out).to.match(/^2026-06-02 12:00Z +4 +the same$/m);
    const hourly = await simulate('--days', '1', '--hourly');
    expect(hourly.out.match(/^2026-06-0\d \d\d:00:00Z +\d/gm)).to.have.lengthOf(25);
  });

  it('prints no control characters from a title', async () => {
    await create('evil \u001b[2J\u202e', '0 12 * * *');
    await project();
    const { out } = await svc(['simulate', '--days', '1'], { env: env(), clock });
    expect(out).to.include('evil \ufffd[2J\ufffd');
    expect(out).to.not.match(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
  });

  it('shows no fires without tasks', async () => {
    const { out } = await simulate();
    expect(out).to.match(/^0 fires of 0 active tasks/);
    expect(out).to.not.include('Busiest');
  });

  it('rejects a folder without a store and creates none', async () => {
    const nowhere = join(directory(), 'nowhere');
    const into = join(nowhere, 'archive');
    for (const words of [
      ['simulate'],
      ['owed'],
      ['admin', 'reset'],
      ['backup', into],
      ['export', into],
      ['export', '--format', 'csv'],
    ]) {
      const called = await svc([...words, '--data-dir', nowhere], { env: {}, clock });
      expect(called.code).to.equal(2);
      expect(called.err).to.include(`there is no store in ${nowhere}`);
    }
    expect(() => statSync(nowhere)).to.throw('ENOENT');
  });

  it('rejects an empty folder name, as from an unset variable', async () => {
    const there = ['--data-dir', join(directory(), 'there')];
    for (const [words, says] of [
      [['restore', 'backup', '--data-dir', ''], '--data-dir is empty'],
      [['owed', '--data-dir', ' '], '--data-dir is empty'],
      [['backup', '', ...there], 'give the folder for the backup'],
      [['restore', '', ...there], 'give the folder of the backup'],
      [['import', '', ...there], 'give the folder of the export'],
      [['export', '', ...there], 'a folder for the log'],
    ] as const) {
      const { code, err } = await svc(words, { env: env() });
      expect(code, words.join(' ')).to.equal(2);
      expect(err).to.include(says);
    }
  });

  it('rejects a restore into a file or below one', async () => {
    const backup = join(directory(), 'a-backup');
    const made = await svc(['backup', backup], { env: env() });
    expect(made.code, made.err).to.equal(0);
    const file = join(directory(), 'a-file');
    writeFileSync(file, '');
    for (const folder of [file, join(file, 'data')]) {
      const { code, err } = await svc(['restore', backup], { env: { SVC_DATA_DIR: folder } });
      expect(code).to.equal(5);
      expect(err).to.include(`${folder} can't be made: ${file} is not a folder`);
    }
  });

  it('rejects a start in the past and an invalid one', async () => {
    for (const from of ['2026-05-31T00:00Z', 'tomorrow']) {
      const called = await svc(['simulate', '--from', from], { env: env(), clock });
      expect(called).to.include({ code: 2, out: '' });
    }
  });

  it('gives the admin a new secret, saved for its owner alone', async () => {
    const id = newId(NOW);
    const fields = { name: 'admin', scopes: ['admin'], webhook_url: null };
    await registerAgentCommand(stores.store, id, fields, 'scrypt$1$1$1$AA$AA', context());
    const called = await svc(['admin', 'reset', '--reason', 'it was lost'], { env: env(), clock });
    expect(called.code, called.err).to.equal(0);
    const file = join(directory(), 'admin-credentials.json');
    const kept = JSON.parse(readFileSync(file, 'utf8')) as {
      agent_id: string;
      agent_secret: string;
    };
    expect(kept.agent_id).to.equal(id);
    expect(called.out).to.include(kept.agent_secret);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
    const { state } = await load(stores.store, `agent-${id}`, agentFold);
    const hash = requireAgent(state).credentials?.secret_hash ?? '';
    expect(await verifySecret(kept.agent_secret, hash)).to.equal(true);
    const [last] = await stores.store.readStream(`agent-${id}`, {
      direction: 'backwards',
      limit: 1,
    });
    expect(last?.metadata).to.include({ reason: 'it was lost', source: 'svc admin reset' });
    expect(JSON.stringify(last)).to.not.include(kept.agent_secret);
  });

  it("prints the admin's new secret even if it cannot be saved", async () => {
    const id = newId(NOW);
    const fields = { name: 'admin', scopes: ['admin'], webhook_url: null };
    await registerAgentCommand(stores.store, id, fields, 'scrypt$1$1$1$AA$AA', context());
    mkdirSync(join(directory(), 'admin-credentials.json'));
    const called = await svc(['admin', 'reset', '--json'], { env: env(), clock });
    const { state } = await load(stores.store, `agent-${id}`, agentFold);
    const hash = requireAgent(state).credentials?.secret_hash ?? '';
    expect(await verifySecret(String(called.json['agent_secret']), hash)).to.equal(true);
    expect(called.err).to.match(
      /the secret could not be saved in \S+admin-credentials\.json: EISDIR/,
    );
    expect(called.code).to.equal(1);
  });

  it('resets another admin by its id, and no other agent', async () => {
    const missing = await svc(['admin', 'reset'], { env: env(), clock });
    expect(missing).to.include({ code: 3 });
    const id = newId(NOW);
    const fields = { name: 'reader', scopes: ['tasks:read'], webhook_url: null };
    await registerAgentCommand(stores.store, id, fields, null, context());
    const reader = await svc(['admin', 'reset', '--agent', id], { env: env(), clock });
    expect(reader.code).to.equal(5);
    const unknown = await svc(['admin', 'reset', '--agent', newId(0)], { env: env(), clock });
    expect(unknown.code).to.equal(3);
  });
});
