import { expect } from 'chai';
import { DatabaseSync } from '@photostructure/sqlite';
import { runStates, runTriggers, scheduleKinds, taskStatuses } from '../../../domain/vocabulary.ts';
import { EVERY_NAMESPACE, type Reach } from '../../../projections/reach.ts';
import { auditFilters, auditProjection, newestAudited } from '../../../projections/views/audit.ts';
import type { Filter, Projection, Sort } from '../../../projections/read-model.ts';
import { runListing, type RunFilters } from '../../../projections/reading/run-queries.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import {
  taskFilters,
  tasksProjection,
  type TaskFilters,
} from '../../../projections/views/tasks.ts';
import {
  compileCount,
  compileFind,
  type CompiledQuery,
} from '../../../stores/sqlite/read-model/query-sql.ts';
import { createTallies } from '../../../stores/sqlite/read-model/tallies.ts';
import {
  columnsOf,
  createIndexes,
  createTables,
} from '../../../stores/sqlite/read-model/view-table.ts';

/**
 * SQLite's plan for every list of the interface. Without statistics, SQLite plans by the indexes alone, so an empty
 * view has the same plans as one with a million documents.
 */
describe('every list of the embedded read model', () => {
  const time = '2026-03-01T00:00:00.000Z';
  const one = <T>(values: readonly T[]): readonly (T | undefined)[] => [undefined, ...values];

  /** Each list as seen by an admin, by an agent of `default`, and by an agent of another namespace. */
  function* everyReach<T>(lists: Iterable<T>): Generator<readonly [Reach, T]> {
    for (const list of lists) {
      for (const reach of [EVERY_NAMESPACE, 'default', 'team']) yield [reach, list];
    }
  }

  function* runLists(): Generator<RunFilters> {
    for (const task_id of one(['t'])) {
      for (const state of one(runStates)) {
        for (const trigger of one(runTriggers)) {
          yield { task_id, state, trigger, until: time };
          for (const start_time of one([time])) {
            for (const end_time of one(['2026-04-01T00:00:00.000Z'])) {
              yield { task_id, state, trigger, start_time, end_time };
            }
          }
        }
      }
    }
  }

  function* taskLists(): Generator<TaskFilters> {
    for (const status of one(taskStatuses)) {
      for (const created_by of one(['a'])) {
        for (const schedule_kind of one(scheduleKinds)) {
          for (const tag of one(['x'])) {
            for (const search of one(['y'])) {
              yield { status, created_by, schedule_kind, tag, search };
            }
          }
        }
      }
    }
  }

  it('of runs is read in order from an index, and its total from an index or a tally', () => {
    const plans = new Plans(runsProjection);
    for (const [reach, wanted] of everyReach(runLists())) {
      const listing = runListing(reach, wanted);
      if (listing === null) continue;
      const { filters, sort } = listing;
      plans.expectOrdered(
        filters,
        sort,
        wanted.task_id === undefined ? /by_/ : /by_(namespace_and_)?task_id_/,
      );
      plans.expectCovered(filters);
    }
    plans.close();
  });

  it('of the child runs of a run is read in order from their own index', () => {
    const plans = new Plans(runsProjection);
    for (const wanted of runLists()) {
      const listing = runListing('*', { ...wanted, task_id: undefined, parent_run_id: 'r' });
      expect(listing).to.not.equal(null);
      if (listing !== null) plans.expectOrdered(listing.filters, listing.sort, /by_parent_run_id_/);
    }
    plans.close();
  });

  it('of tasks is read in order from an index, and its total from an index or a tally', () => {
    const plans = new Plans(tasksProjection);
    const sort = [{ field: 'created_at', direction: 'descending' }] as const;
    for (const [reach, wanted] of everyReach(taskLists())) {
      const filters = taskFilters(reach, wanted);
      plans.expectOrdered(
        filters,
        sort,
        wanted.created_by === undefined ? /by_/ : /by_(namespace_and_)?created_by/,
      );
      plans.expectCovered(filters);
      if (wanted.tag !== undefined) plans.expectCollected(filters, sort);
    }
    plans.close();
  });

  it('of the audit is read in order from an index', () => {
    const plans = new Plans(auditProjection);
    for (const [reach, actor] of everyReach(one(['a']))) {
      for (const stream of one(['task-1'])) {
        for (const type of one(['TaskCreated'])) {
          for (const from of one([time])) {
            const filters = auditFilters({ reach, actor, stream, type, from });
            plans.expectOrdered(
              filters,
              newestAudited,
              stream === undefined ? /by_/ : /by_(namespace_and_)?stream/,
            );
          }
        }
      }
    }
    plans.close();
  });
});

/** SQLite's plan over an empty view. */
class Plans {
  readonly #projection: Projection;
  readonly #database = new DatabaseSync(':memory:');

  constructor(projection: Projection) {
    this.#projection = projection;
    createTables(this.#database, columnsOf(projection), null);
    createTallies(this.#database, projection, columnsOf(projection));
    createIndexes(this.#database, projection, columnsOf(projection));
  }

  /** The first page and one by cursor read an index in order; at most the page itself is sorted. */
  expectOrdered(filters: readonly Filter[], sort: readonly Sort[], index: RegExp): void {
    const after = { values: sort.map(() => '2026-03-15T00:00:00.000Z'), key: 'k' };
    for (const page of [{}, { after }]) {
      const query = { filters, sort, limit: 51, ...page };
      const steps = this.#steps(compileFind(this.#projection, query), true);
      const text = `${JSON.stringify(query)}\n${steps.join('\n')}`;
      expect(text)
        .to.match(/USING (?:COVERING )?INDEX/)
        .and.to.match(index);
      expect(text).to.not.match(/SCAN documents$/m);
      // Merged rows come in order, and the page is sorted again after reading its documents.
      const isMerged = steps.some((step) => step.startsWith('MERGE'));
      if (!isMerged) expect(text).to.not.include('TEMP B-TREE');
    }
  }

  /** A list with a rare entry: its documents are collected by that entry alone. */
  expectCollected(filters: readonly Filter[], sort: readonly Sort[]): void {
    const { plans } = compileFind(this.#projection, { filters, sort, limit: 51 });
    const text = this.#steps({ probe: null, plans: { rare: [], common: plans.rare } }, true).join(
      '\n',
    );
    expect(text).to.match(/SEARCH documents USING INTEGER PRIMARY KEY/);
  }

  expectCovered(filters: readonly Filter[]): void {
    const steps = this.#steps(compileCount(this.#projection, filters), false);
    for (const step of steps.filter((each) => each.includes(' documents '))) {
      expect(`${JSON.stringify(filters)}\n${steps.join('\n')}\n${step}`).to.match(
        /USING COVERING INDEX|INTEGER PRIMARY KEY/,
      );
    }
  }

  close(): void {
    this.#database.close();
  }

  #steps({ plans }: CompiledQuery, limited: boolean): readonly string[] {
    return plans.common.flatMap(({ sql, parameters }) => {
      const values = limited ? [51, ...parameters] : parameters;
      const rows = this.#database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as {
        detail: string;
      }[];
      return rows.map(({ detail }) => detail);
    });
  }
}
