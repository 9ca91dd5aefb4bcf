import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../domain/json.ts';
import { skippedEventKey } from '../../../domain/operators/skipped-events.ts';
import {
  foldBatch,
  foldInto,
  keysBegun,
  keysTouched,
  touchingEvents,
  type KnownDocument,
} from '../../../projections/projector/fold-batch.ts';
import type { Projection } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import { tasksProjection } from '../../../projections/views/tasks.ts';
import { LogOfTest, definition, failure, folded, request, stepEnd, success } from '../recorded.ts';

const anchor = '2026-03-01T08:00:00.000Z';
const fire = { nominal: anchor, run_id: 'r', task_revision: 0, fire_count: 1 };

/** Events in any order, even a meaningless one, because a fold must accept them all. */
const appends: readonly ((log: LogOfTest, id: string) => unknown)[] = [
  (log, id) => log.add(`run-${id}`, 'RunRequested', request({ task_id: id })),
  (log, id) =>
    log.add(`run-${id}`, 'RunStarted', { worker: 'w', attempt: 1, leased_until: anchor }),
  (log, id) => log.add(`run-${id}`, 'RunStepCompleted', stepEnd('a')),
  (log, id) => log.add(`run-${id}`, 'RunInterrupted', { worker: 'w', cause: 'drained' }),
  (log, id) => log.add(`run-${id}`, 'RunSucceeded', success({ task_id: id })),
  (log, id) => log.pass(40_000_000).add(`run-${id}`, 'RunFailed', failure({ task_id: id })),
  (log, id) => {
    const created = { definition: definition(), anchor, next_fire_at: anchor };
    return log.add(`task-${id}`, 'TaskCreated', created);
  },
  (log, id) => log.add(`task-${id}`, 'TaskPaused', { by_failures: true }),
  (log, id) => log.add(`fires-${id}`, 'Fired', { ...fire, next_fire_at: null }),
];

const logs = fc
  .array(fc.tuple(fc.nat({ max: appends.length - 1 }), fc.constantFrom('1', '2', '3')), {
    maxLength: 60,
  })
  .map((choices) => {
    const log = new LogOfTest();
    for (const [which, id] of choices) appends[which]?.(log, id);
    return log;
  });

/** Folds a log in batches, each twice, as after a lost response. */
function inBatches(
  projection: Projection,
  log: LogOfTest,
  sizes: readonly number[],
): ReadonlyMap<string, JsonObject> {
  const kept = new Map<string, KnownDocument>();
  let done = 0;
  for (let turn = 0; done < log.events.length; turn += 1) {
    const batch = log.events.slice(done, done + (sizes[turn % sizes.length] ?? 1));
    done += batch.length;
    for (let again = 0; again < 2; again += 1) {
      const touching = touchingEvents(projection, batch, '');
      const known = new Map(
        keysTouched(touching).flatMap((key) => {
          const found = kept.get(key);
          return found ? [[key, found] as const] : [];
        }),
      );
      const { documents, poisoned } = foldBatch(projection, touching, known, new Map());
      expect(poisoned).to.deep.equal([]);
      for (const { key, position, document } of documents) kept.set(key, { position, document });
    }
  }
  return new Map(
    [...kept].flatMap(([key, { document }]) => (document === null ? [] : [[key, document]])),
  );
}

describe('folding in batches', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });

  for (const projection of [runsProjection, tasksProjection, statisticsProjection]) {
    it(`gives the same ${projection.name} as one replay, however it is cut and repeated`, () => {
      fc.assert(
        fc.property(logs, sizes, (log, cuts) => {
          const replay = new Map<string, JsonObject>(folded(projection as Projection, log.events));
          expect(inBatches(projection, log, cuts)).to.deep.equal(replay);
        }),
        { numRuns: 60 },
      );
    });
  }

  it('gives the same if a batch comes in pieces, without changing its input', () => {
    for (const projection of [runsProjection as Projection, statisticsProjection as Projection]) {
      fc.assert(
        fc.property(logs, sizes, (log, cuts) => {
          const told = structuredClone(log.events);
          const changed = new Map<string, KnownDocument>();
          for (let done = 0, turn = 0; done < log.events.length; turn += 1) {
            const piece = log.events.slice(done, done + (cuts[turn % cuts.length] ?? 1));
            done += piece.length;
            const touching = touchingEvents(projection, piece, '');
            const none = new Map<string, never>();

            const held = foldInto(changed, projection, touching, none, none, new Set());
            expect(held).to.deep.equal({ poisoned: [], leftOut: [] });
          }
          const whole = touchingEvents(projection, log.events, '');
          const batch = foldBatch(projection, whole, new Map(), new Map());
          const inPieces = Array.from(changed, ([key, after]) => ({ key, ...after }));
          expect(inPieces).to.deep.equal(batch.documents);
          expect(log.events).to.deep.equal(told);
        }),
        { numRuns: 60 },
      );
    }
  });

  it('changes neither known documents nor events', () => {
    const log = new LogOfTest();
    for (let run = 0; run < 5; run += 1) log.add(`run-${run}`, 'RunSucceeded', success());
    const fold = (
      known: ReadonlyMap<string, KnownDocument>,
    ): ReadonlyMap<string, KnownDocument> => {
      const touching = touchingEvents(statisticsProjection, log.events, '');
      const { documents } = foldBatch(statisticsProjection, touching, known, new Map());
      return new Map(documents.map(({ key, ...rest }) => [key, rest]));
    };
    const known = new Map(
      [...fold(new Map())].map(([key, each]) => [key, { ...each, position: '' }]),
    );
    const before = structuredClone({ known, events: log.events });
    const after = [...fold(known).values()];
    expect(after.map(({ document }) => document?.['total'])).to.include(10);
    expect({ known, events: log.events }).to.deep.equal(before);
  });

  it('withholds later events of a poisoned key, and nothing else', () => {
    const log = new LogOfTest();
    log.add('run-1', 'RunRequested', request());
    const broken = { ...log.add('run-1', 'RunStepCompleted', stepEnd('a')), fault: 'broken' };
    log.add('run-1', 'RunCanceled', { attempt: 1 });
    log.add('run-2', 'RunRequested', request());
    const events = log.events.map((event) => (event.id === broken.id ? broken : event));
    const touching = touchingEvents(runsProjection, events, '');
    const result = foldBatch(runsProjection, touching, new Map(), new Map());
    expect(
      result.documents.map(({ key, document }) => `${key} ${JSON.stringify(document?.['state'])}`),
    ).to.deep.equal(['1 "queued"', '2 "queued"']);
    expect(result.poisoned).to.deep.equal([
      {
        key: '1',
        position: broken.position,
        stream: 'run-1',
        revision: 1,
        type: 'RunStepCompleted',
        error: 'broken',
      },
    ]);
  });

  it('leaves out skipped events that still cannot be folded, and folds later ones', () => {
    const log = new LogOfTest();
    log.add('run-1', 'RunRequested', request());
    const broken = { ...log.add('run-1', 'RunStepCompleted', stepEnd('a')), fault: 'broken' };
    log.add('run-1', 'RunCanceled', { attempt: 1 });
    const events = log.events.map((event) => (event.id === broken.id ? broken : event));
    const touching = touchingEvents(runsProjection, events, '');
    const { stream, position } = broken;
    for (const revision of [1, null]) {
      const skipped = new Set([skippedEventKey({ key: '1', stream, revision, position })]);
      const result = foldBatch(runsProjection, touching, new Map(), new Map(), skipped);
      expect(result.poisoned).to.deep.equal([]);
      expect(result.leftOut.map(({ error }) => error)).to.deep.equal(['broken']);
      const [{ document } = { document: null }] = result.documents;
      expect(document).to.deep.include({ state: 'canceled', steps: [] });
    }
    const elsewhere = new Set([skippedEventKey({ key: '2', stream, revision: 1, position })]);
    const held = foldBatch(runsProjection, touching, new Map(), new Map(), elsewhere);
    expect(held.poisoned).to.have.length(1);
  });

  it('finds the streams that begin in the batch', () => {
    const log = new LogOfTest();
    log.add('run-1', 'RunRequested', request());
    const after = log.events.length;
    log.add('run-2', 'RunRequested', request());
    log.add('run-1', 'RunCanceled', { attempt: 1 });
    log.add('run-2', 'RunCanceled', { attempt: 1 });
    const touching = touchingEvents(runsProjection, log.events.slice(after), '');
    expect(keysBegun(touching)).to.deep.equal(['2']);
    expect(keysTouched(touching)).to.deep.equal(['2', '1']);
  });
});
