import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { changeKey } from '../../../domain/keys/key-stream.ts';
import { holdKey } from '../../../domain/keys/key.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { AuditedProcess, plant } from './audit-world.ts';
import { minute, START, World } from '../scheduler-world.ts';

const hour = 60 * minute;
const year = 365 * 24 * hour;
const once = { found: 1, mended: 1 };

describe("the scheduler's audit, after a clock was years ahead", () => {
  let world: World;

  beforeEach(async () => {
    world = await World.open();
  });

  afterEach(async () => {
    await world.close();
  });

  const fired = (at: number, n: number): DomainEvent => ({
    type: 'Fired',
    data: {
      nominal: toIso(at),
      run_id: `00000000-0000-5000-8000-00000000000${String(n)}`,
      next_fire_at: null,
      task_revision: 0,
      fire_count: n,
    },
  });

  it('checks the fires that were decided then, and later ones', async () => {
    for (const task of ['t', 'u']) await world.createTask(task, { schedule_expr: '0 0 1 1 *' });
    const audited = new AuditedProcess(world, await world.start('one'));
    const ahead = { ...world.context(), now: START + 5 * year };
    const early = toNewEvents('fires-t', [fired(START, 1)], ahead);
    await world.store.append('fires-t', early, 'any');
    await plant(world, 'fires-u', [fired(START, 2)]);
    await world.clock.advance(minute);
    await audited.pass();
    expect(audited.telemetry.audited('fire_without_run')).to.deep.equal({ found: 2, mended: 2 });
  });

  it('releases a key of an ended run, even if it was taken then', async () => {
    await world.createTask('t', { schedule_expr: '0 0 1 1 *' });
    const name = { kind: 'concurrency', owner: 'agent-1', key: 'k' } as const;
    const now = START + 5 * year;
    const about = { run_id: 'ended', task_id: 't', trigger: 'manual' } as const;
    const claim = { ...about, priority: 5, since: now, limit: 5, attempt: 1 };
    await changeKey(world.store, name, { ...world.context(), now }, (state) => {
      return { events: holdKey(state, claim, now).events, answer: null };
    });
    await plant(world, 'run-ended', [{ type: 'Abandoned', data: { reservation: 'x' } }]);
    const audited = new AuditedProcess(world, await world.start('one'));
    await world.clock.advance(2 * minute);
    await audited.pass();
    expect(audited.telemetry.audited('key_without_run')).to.deep.equal(once);
  });
});
