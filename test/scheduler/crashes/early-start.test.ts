import { expect } from 'chai';
import { EventStoreError, type NewEvent, type RecordedEvent } from '../../../domain/event-store.ts';
import { scheduledRunId } from '../../../domain/ids.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { CrashProcess, LEASE, type Seen } from './crash-process.ts';
import { START, World } from '../scheduler-world.ts';

const second = 1000;

/** Due ten seconds after the start. */
const NOMINAL = new Date(START + 10 * second).toISOString();

describe('an instant run that is due in a process with a worker', () => {
  let world: World;
  const seen: Seen[] = [];
  const processes: CrashProcess[] = [];

  beforeEach(async () => {
    world = await World.open();
    seen.length = 0;
    processes.length = 0;
  });

  afterEach(async () => {
    for (const process of processes) await process.stop();
    await world.close();
  });

  const start = async (id: string): Promise<CrashProcess> => {
    const process = new CrashProcess(world, id, seen);
    processes.push(process);
    await process.ready.wait();
    await world.idle();
    return process;
  };

  const createTask = (uses: string, fields: Partial<TaskDefinition> = {}): Promise<unknown> =>
    world.createTask('t', {
      schedule_kind: 'once',
      schedule_expr: NOMINAL,
      misfire_grace_seconds: 600,
      payload: { pipeline: [{ id: 'only', uses }] },
      ...fields,
    });

  const runId = scheduledRunId('t', NOMINAL);
  const typesOfRun = async (): Promise<string[]> =>
    (await world.store.readStream(`run-${runId}`)).map(({ type }) => type);

  const isRequest = (events: readonly (NewEvent | RecordedEvent)[]): boolean =>
    events.some(({ type }) => type === 'RunRequested');

  it('is written together with its start', async () => {
    await createTask('note');
    const one = await start('one');
    await world.clock.advance(10 * second);
    expect(one.appends.slice(-3)).to.deep.equal([
      'Fired',
      'RunRequested+RunStarted',
      'RunSucceeded',
    ]);
    const [requested, started] = await world.store.readStream(`run-${runId}`);
    expect(requested?.metadata.occurredAt).to.equal(NOMINAL);
    expect(started?.metadata.occurredAt).to.equal(NOMINAL);
    expect(started?.metadata.source).to.equal('one');
    expect(seen.filter(({ kind }) => kind === 'call')).to.have.length(1);
  });

  it('has a lease that counts from its actual start, even if the start is late', async () => {
    await createTask('note');
    const one = await start('one');
    await world.clock.advance(9 * second);
    world.clock.jumpTo(START + 11_500);
    await world.idle();
    expect(one.appends).to.include('RunRequested+RunStarted');
    const [, started] = await world.store.readStream(`run-${runId}`);
    if (started?.type !== 'RunStarted') throw new Error('the run has not started');
    const { data, metadata } = started;
    const lease = Date.parse(data.leased_until) - Date.parse(metadata.occurredAt);
    expect(lease).to.equal(LEASE);
  });

  it('starts from the log if it may take time, needs a key, or has an overlap policy', async () => {
    const others: readonly [string, Partial<TaskDefinition>][] = [
      ['act', {}],
      ['note', { concurrency_key: 'printer' }],
      ['note', { overlap_policy: 'skip' }],
      ['note', { dedupe_key: 'once' }],
    ];
    for (const [index, [uses, fields]] of others.entries()) {
      await world.createTask(`t${index}`, {
        schedule_kind: 'once',
        schedule_expr: NOMINAL,
        misfire_grace_seconds: 600,
        payload: { pipeline: [{ id: 'only', uses }] },
        ...fields,
      });
    }
    const one = await start('one');
    await world.clock.advance(11 * second);
    expect(one.appends).not.to.include('RunRequested+RunStarted');
    expect(one.appends.filter((append) => append.includes('RunSucceeded'))).to.have.length(4);
  });

  it('starts from the log if another worker is preferred', async () => {
    await createTask('note');
    const two = [await start('one'), await start('two')] as const;
    await world.clock.advance(9 * second);
    await world.idle();
    await world.clock.advance(2 * second);
    const together = two.flatMap(({ id, appends }) =>
      appends.includes('RunRequested+RunStarted') ? [id] : [],
    );
    const [, , ...rest] = await typesOfRun();
    expect(rest).to.deep.equal(['RunSucceeded']);
    const [, started] = await world.store.readStream(`run-${runId}`);
    const leader = two.find(({ leadership }) => leadership.leads)?.id;
    // The leader decides. It starts the run itself only if no other worker is preferred.
    expect(together).to.deep.equal(started?.metadata.source === leader ? [leader] : []);
  });

  it('runs once if another process has requested it before', async () => {
    await createTask('note');
    const one = await start('one');
    let isFirst = true;
    one.store.onAppend = async (stream, events) => {
      const [request] = events;
      if (!isFirst || !isRequest(events) || request === undefined) return;
      isFirst = false;
      await world.store.append(stream, [request], 'none');
    };
    await world.clock.advance(12 * second);
    expect(isFirst).to.equal(false);
    expect(await typesOfRun()).to.deep.equal(['RunRequested', 'RunStarted', 'RunSucceeded']);
    expect(seen.filter(({ kind }) => kind === 'call')).to.have.length(1);
  });

  it('continues if the response to its start is lost', async () => {
    await createTask('note');
    const one = await start('one');
    let isFirst = true;
    one.store.afterAppend = (_stream, events) => {
      if (!isFirst || !isRequest(events)) return;
      isFirst = false;
      throw new EventStoreError('OUTCOME_UNKNOWN', 'the response was lost');
    };
    await world.clock.advance(60 * second);
    expect(isFirst).to.equal(false);
    expect(await typesOfRun()).to.deep.equal([
      'RunRequested',
      'RunStarted',
      'RunInterrupted',
      'RunStarted',
      'RunSucceeded',
    ]);
    expect(seen.filter(({ kind }) => kind === 'call')).to.have.length(1);
  });

  it('is requested but left to other workers when its own worker stops', async () => {
    await createTask('note');
    const one = await start('one');
    await one.worker.drain(0);
    await world.clock.advance(10 * second);
    expect(await typesOfRun()).to.deep.equal(['RunRequested']);
  });
});
