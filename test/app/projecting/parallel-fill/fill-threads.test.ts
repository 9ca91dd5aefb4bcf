import { DatabaseSync } from '@photostructure/sqlite';
import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { FillingThreads } from '../../../../app/projecting/parallel-fill/fill-threads.ts';
import type { JsonObject } from '../../../../domain/json.ts';
import { silent } from '../../../../observability/telemetry.ts';
import {
  PoisonedShareError,
  type FillElsewhere,
  type FillListener,
  type FillOrder,
} from '../../../../projections/parallel-fill/parallel-fill.ts';
import { Parking } from '../../../../projections/projector/parking.ts';
import { runsProjection } from '../../../../projections/views/runs.ts';
import { logFile } from '../../../../stores/sqlite/event-log/schema.ts';
import { ProjectorHarness } from '../../../projections/projector-harness.ts';
import { failure, folded, request, stepEnd, success } from '../../../projections/recorded.ts';
import { eventually } from '../../../support/signals.ts';

/** Enough that each share is read in several pages. */
const RUNS = 900;

describe('threads that fill a view', function () {
  this.timeout(240_000);
  let harness: ProjectorHarness;
  let threads: FillingThreads;
  beforeEach(async () => {
    harness = await ProjectorHarness.open();
    const place = {
      log: harness.logDirectory,
      views: harness.viewDirectory,
      logLevel: 'silent',
    } as const;
    threads = new FillingThreads({ place, telemetry: silent, threads: 3, leastEvents: 500 });
  });
  afterEach(() => harness.close());

  /** Runs in all states, with their events interleaved. */
  async function addRuns(): Promise<void> {
    const { log } = harness;
    const runs = Array.from({ length: RUNS }, (_, n) => `run-r${String(n)}`);
    for (const [n, run] of runs.entries()) {
      log.add(run, 'RunRequested', request({ task_id: `task-${String(n % 7)}` }));
      const due = { next_fire_at: null, task_revision: 0, fire_count: 1 };
      const nominal = '2026-03-01T09:00:00.000Z';
      log.add(`fires-${String(n)}`, 'Fired', { nominal, run_id: run, ...due });
    }
    const started = runs.filter((_, n) => n % 5 > 0);
    for (const run of started) {
      const leased_until = '2026-03-01T09:30:00.000Z';
      log.add(run, 'RunStarted', { worker: 'w', attempt: 1, leased_until });
      log.add(run, 'RunStepCompleted', stepEnd('one'));
    }
    for (const [n, run] of started.entries()) {
      if (n % 4 === 0) continue;
      if (n % 4 === 1) log.add(run, 'RunFailed', failure());
      else log.add(run, 'RunSucceeded', success({ output: { of: run } }));
    }
    await harness.append();
  }

  const order = async (fields: Partial<FillOrder> = {}): Promise<FillOrder> => ({
    head: await harness.store.head(),
    name: 'runs',
    generation: 1,
    fence: 1,
    batchSize: 50,
    endsAtPoison: true,
    skipped: new Set<string>(),
    ...fields,
  });
  const listener = (fields: Partial<FillListener> = {}): FillListener => ({
    onProgress: () => undefined,
    parking: new Parking(harness.readModel, 1),
    ...fields,
  });
  const never = new AbortController().signal;

  /** The documents of the view, by run. */
  async function documents(): Promise<ReadonlyMap<string, JsonObject>> {
    const all = { filters: [], sort: [], limit: 10_000 };
    const found = await harness.readModel.find(runsProjection, all);
    return new Map(found.map(({ key, document }) => [key, document]));
  }

  /** The view equals the result of folding the appended events. */
  async function expectWhole(but: readonly string[] = []): Promise<void> {
    const expected = new Map(folded(runsProjection, harness.log.events));
    const found = new Map(await documents());
    for (const run of but) for (const each of [expected, found]) each.delete(run);
    expect([...found.keys()].sort()).to.deep.equal([...expected.keys()].sort());
    for (const [run, document] of expected) expect(found.get(run), run).to.deep.equal(document);
    const succeeded = [...expected.values()].filter(({ state }) => state === 'succeeded').length;
    const isSucceeded = { field: 'state', op: 'eq', value: 'succeeded' } as const;
    expect(await harness.readModel.count(runsProjection, [isSucceeded])).to.equal(succeeded);
  }

  /** Makes an event of the log one that cannot be folded. */
  function breakEvent(stream: string, revision: number): void {
    const database = new DatabaseSync(logFile(harness.logDirectory));
    database
      .prepare(
        `UPDATE events SET data = '{}' WHERE revision = ?
         AND stream = (SELECT id FROM streams WHERE name = ?)`,
      )
      .run(revision, stream);
    database.close();
  }

  it('build the first generation and an ordered next one, from which the view continues', async () => {
    await addRuns();
    const filled: number[] = [];
    const fillElsewhere: FillElsewhere = {
      isWorthIt: (head) => threads.isWorthIt(head),
      fill: (asked, ...rest) => {
        filled.push(asked.generation);
        return threads.fill(asked, ...rest);
      },
    };
    const projector = harness.start([runsProjection], { fillElsewhere });
    await harness.reached(runsProjection, await harness.store.head());
    await expectWhole();
    expect(await harness.rebuild(runsProjection)).to.equal(2);
    await eventually(
      async () => {
        expect(await harness.readModel.liveGeneration(runsProjection)).to.equal(2);
      },
      { limitMs: 120_000 },
    );
    expect(filled).to.deep.equal([1, 2]);
    const [status] = projector.status();
    // Only events of runs count, because the view follows no other stream.
    const ofRuns = harness.log.events.filter(({ stream }) => stream.startsWith('run-'));
    expect(status?.handled).to.be.at.least(ofRuns.length);
    await expectWhole();
    harness.log.add('run-r0', 'RunStarted', {
      worker: 'w',
      attempt: 1,
      leased_until: '2026-03-01T09:30:00.000Z',
    });
    await harness.reached(runsProjection, await harness.append());
    await expectWhole();
    expect(
      readdirSync(harness.viewDirectory).filter((name) => name.includes('share')),
    ).to.deep.equal([]);
  });

  it('include each run that starts in the meantime once, and no removed one', async () => {
    await addRuns();
    const before = await order();
    // All later events are of new runs, so no other run is looked up.
    const { log } = harness;
    const late = Array.from({ length: 40 }, (_, n) => `run-late${String(n)}`);
    for (const run of late) log.add(run, 'RunRequested', request());
    for (const run of late.slice(0, 10)) log.add(run, 'RunRemoved', {});
    await harness.append();
    expect(await threads.fill(before, listener(), never)).to.equal(true);
    await harness.readModel.switchTo(runsProjection, 1);
    await expectWhole();
    const all = await harness.readModel.count(runsProjection, []);
    expect(all).to.equal((await documents()).size);
  });

  it('are not started for a short log', async () => {
    expect(threads.isWorthIt('')).to.equal(false);
    expect(threads.isWorthIt('0000000000000499')).to.equal(false);
    expect(threads.isWorthIt('0000000000000500')).to.equal(true);
  });

  it('pause when stopped, and continue from there', async () => {
    await addRuns();
    breakEvent('run-r2', 2);
    const stop = new AbortController();
    const kept = new Parking(harness.readModel, 1);
    const parking = {
      of: (view: string) => kept.of(view),
      park: async (...held: Parameters<Parking['park']>) => {
        // Stops in the middle of the log, so that this share has not reached its end.
        stop.abort();
        await kept.park(...held);
      },
    };
    const goesOn = await order({ endsAtPoison: false });
    expect(await threads.fill(goesOn, listener({ parking }), stop.signal)).to.equal(false);
    const counts: number[] = [];
    const onProgress = ({ handled }: { readonly handled: number }): void =>
      void counts.push(handled);
    expect(await threads.fill(goesOn, listener({ parking: kept, onProgress }), never)).to.equal(
      true,
    );
    const ofRuns = harness.log.events.filter(({ stream }) => stream.startsWith('run-'));
    expect(counts.at(-1)).to.be.within(1, ofRuns.length - 1);
    await kept.close();
    await harness.readModel.switchTo(runsProjection, 1);
    await expectWhole(['r2']);
    expect((await documents()).get('r2')).to.deep.include({ state: 'running', revision: 1 });
  });

  it('stop at an event that cannot be folded, and name it, if another generation can be read', async () => {
    await addRuns();
    breakEvent('run-r2', 1);
    const error: unknown = await threads
      .fill(await order(), listener(), never)
      .catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(PoisonedShareError);
    const { poisoned } = error as PoisonedShareError;
    expect(poisoned).to.deep.include({ stream: 'run-r2', revision: 1, type: 'RunStarted' });
  });

  it('report their error', async () => {
    const error: unknown = await threads
      .fill(await order({ name: 'unknown' }), listener(), never)
      .catch((reason: unknown) => reason);
    expect(String(error)).to.contain('there is no view unknown');
  });

  it('handle an event again if its key could not be parked', async () => {
    await addRuns();
    breakEvent('run-r2', 1);
    const kept = new Parking(harness.readModel, 1);
    let refusals = 1;
    const parking = {
      of: (view: string) => kept.of(view),
      park: async (...held: Parameters<Parking['park']>) => {
        refusals -= 1;
        if (refusals >= 0) throw new Error('the disk is full');
        await kept.park(...held);
      },
    };
    const ended = threads.fill(await order({ endsAtPoison: false }), listener({ parking }), never);
    expect(await ended).to.equal(true);
    expect(refusals).to.equal(-1);
    await kept.close();
    await harness.readModel.switchTo(runsProjection, 1);
    await expectWhole(['r2']);
  });
});
