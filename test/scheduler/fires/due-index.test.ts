import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { decideFires } from '../../../domain/tasks/fires.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { silent } from '../../../observability/telemetry.ts';
import { DueIndex, type DueEntry } from '../../../scheduler/fires/due-index.ts';
import { Signal } from '../../support/signals.ts';
import { START, World } from '../scheduler-world.ts';

const second = 1000;

describe('an entry of the due index whose decision failed', () => {
  let world: World;
  let index: DueIndex;
  let entry: DueEntry;
  let schedule: DueEntry['state'];
  let changed: Signal;
  let stop: AbortController;
  let following: Promise<void>;

  beforeEach(async () => {
    world = await World.open();
    await world.createTask('t', { schedule_expr: '* * * * * *' });
    index = new DueIndex(world.connect(), world.readModel, silent);
    stop = new AbortController();
    const ready = new Signal('the index to be current');
    following = index.follow(stop.signal, () => ready.send());
    await ready.wait();
    const [due] = index.takeDue(START + second, 1);
    if (due === undefined) throw new Error('nothing is due');
    entry = due;
    schedule = due.state;
    changed = new Signal('the index to hear of the decision');
  });

  afterEach(async () => {
    stop.abort();
    await following;
    await world.close();
  });

  /** Another process decides the due fire. */
  const decideElsewhere = async (): Promise<void> => {
    const stream = streams.fires('t');
    const { events } = decideFires('t', schedule, index.scheduleOf(entry), START + second);
    index.onChange(() => changed.send());
    await world.store.append(stream, toNewEvents(stream, events, world.context()), 'none');
    await changed.wait();
  };

  it('waits before the next decision', () => {
    index.settle(entry, schedule, START + 5 * second);
    expect(index.earliest()).to.equal(START + 5 * second);
    expect(entry.failures).to.equal(1);
  });

  it('does not wait after a lost race', async () => {
    await decideElsewhere();
    index.settle(entry, schedule, START + 5 * second);
    expect(toIso(index.earliest() ?? NaN)).to.equal(toIso(START + 2 * second));
    expect(entry.failures).to.equal(0);
  });

  it('does not wait after a lost race that the index sees later', async () => {
    index.settle(entry, schedule, START + 5 * second);
    await decideElsewhere();
    expect(toIso(index.earliest() ?? NaN)).to.equal(toIso(START + 2 * second));
  });
});
