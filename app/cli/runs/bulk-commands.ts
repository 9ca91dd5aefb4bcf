import type { Command } from 'commander';
import type { RunsCanceled, RunsRedriven } from '../../../api/client/client.ts';
import { retryStarts, unfinishedRunStates } from '../../../domain/vocabulary.ts';
import { confirmed } from '../calling/confirm.ts';
import type { ServiceRequest } from '../calling/client.ts';
import type { Session } from '../calling/session.ts';
import { choice, flag, wholeNumber } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { selectionOf, selectionOptions } from './run-search-options.ts';

/** Most runs of one command: as many as the service changes in one call. */
const MAX_RUNS = 1000;

const shared = {
  ...selectionOptions,
  limit: wholeNumber('n', 'most runs to act on, up to 1,000', 1, MAX_RUNS),
  dryRun: flag('only count them'),
  yes: flag('do not ask'),
};

/** `svc runs redrive` and `svc runs cancel-many` */
export function addBulkCommands(line: CommandLine, group: Command): void {
  line.add(group, 'redrive', {
    description: 'retry all failed runs that match the filters, after showing how many',
    options: { ...shared, from: choice('step', 'where the new runs start', retryStarts) },
    examples: [
      'runs redrive --since 2026-11-20T00:00Z --error ECONNREFUSED --dry-run',
      'runs redrive --error-group 4b1d0f7c2a9e8d35 --yes',
    ],
    run: (session, { from, limit, dryRun, yes, ...selection }) => {
      const meant = { ...selectionOf(selection), from };
      return actOnMany<RunsRedriven>(
        session,
        { limit, dryRun, yes },
        {
          question: (runs) => `Retry ${runs}?`,
          one: 'failed run',
          would: 'would be retried',
          did: 'retried',
          ask: (page) => (api) => api.runs.redrive({ ...meant, ...page }),
        },
      );
    },
  });
  line.add(group, 'cancel-many', {
    description: 'cancel all unfinished runs that match the filters, after showing how many',
    options: { ...shared, state: choice('state', 'runs in this state', unfinishedRunStates) },
    examples: [
      'runs cancel-many --task 01a1fc11-… --state queued',
      'runs cancel-many --input order-4711 --yes --reason "wrong prices"',
    ],
    run: (session, { state, limit, dryRun, yes, ...selection }) => {
      const meant = { ...selectionOf(selection), state };
      return actOnMany<RunsCanceled>(
        session,
        { limit, dryRun, yes },
        {
          question: (runs) => `Cancel ${runs}?`,
          one: 'unfinished run',
          would: 'would be canceled',
          did: 'canceled',
          ask: (page) => (api) => api.runs.cancelMany({ ...meant, ...page }),
        },
      );
    },
  });
}

type Answer = RunsRedriven | RunsCanceled;

interface Bulk<T extends Answer> {
  readonly question: (runs: string) => string;
  /** The name of one item. */
  readonly one: string;
  readonly would: string;
  readonly did: string;
  readonly ask: (page: Page) => ServiceRequest<T>;
}

interface Page {
  readonly limit: number;
  readonly cursor: string | undefined;
  readonly dry_run: boolean;
}

/** Counts the runs, asks, and acts on no more runs than it counted, because further runs may match by then. */
async function actOnMany<T extends Answer>(
  session: Session,
  {
    limit = MAX_RUNS,
    dryRun = false,
    yes = false,
  }: {
    readonly limit?: number | undefined;
    readonly dryRun?: boolean | undefined;
    readonly yes?: boolean | undefined;
  },
  bulk: Bulk<T>,
): Promise<void> {
  const counted = await allPages(session, bulk, limit, true);
  const { count } = counted.details;
  const isAll = counted.details.next_cursor === null;
  const more = isAll ? '' : '; there may be more, call it again';
  const runs = `${count.toLocaleString('en')} ${bulk.one}${count === 1 ? '' : 's'}`;
  if (dryRun || count === 0) {
    session.answer(counted, () => `${runs} ${bulk.would}${leftOut(counted)}${more}`);
    return;
  }
  const question = bulk.question(`${isAll ? '' : 'the first '}${runs}${leftOut(counted)}`);
  if (!(await confirmed(session.environment, question, yes))) {
    session.aside('nothing was done');
    return;
  }
  const done = await allPages(session, bulk, count, false);
  session.answer(done, () => {
    const many = done.details.count;
    const texts = `${many.toLocaleString('en')} ${bulk.one}${many === 1 ? ' is' : 's are'}`;
    return `${texts} ${bulk.did}${leftOut(done)}${more}`;
  });
}

/**
 * A call of the service lasts some seconds and then returns a cursor. Repeats the call until the limit is reached or no
 * run is left.
 * @returns the last answer, with the runs and counts of all answers
 */
async function allPages<T extends Answer>(
  session: Session,
  { ask }: Bulk<T>,
  limit: number,
  dry_run: boolean,
): Promise<T> {
  let sum: T | undefined;
  for (let cursor: string | undefined; ;) {
    const done = sum?.details.count ?? 0;
    const page = await session.client.call(ask({ limit: limit - done, cursor, dry_run }));
    sum = sum === undefined ? page : added(sum, page);
    const { next_cursor, count } = sum.details;
    if (next_cursor === null || count >= limit) return sum;
    cursor = next_cursor;
    if (!dry_run) session.aside(`${count.toLocaleString('en')} so far`);
  }
}

function added<T extends Answer>(sum: T, page: T): T {
  const before: Readonly<Record<string, number>> = sum.details.passed_over;
  const passed_over = Object.fromEntries(
    Object.entries(page.details.passed_over).map(([why, many]) => [why, many + (before[why] ?? 0)]),
  );
  const count = sum.details.count + page.details.count;
  const runs = [...sum.details.runs, ...page.details.runs];
  return { ...page, details: { ...page.details, count, passed_over, runs } };
}

/** ` (left out: 3 succeeded)` */
function leftOut({ details: { passed_over } }: Answer): string {
  const reasons = Object.entries(passed_over)
    .filter(([, many]) => many > 0)
    .map(([why, many]) => `${many.toLocaleString('en')} ${why.replaceAll('_', ' ')}`);
  return reasons.length === 0 ? '' : ` (left out: ${reasons.join(', ')})`;
}
