import { fromIso, type Clock } from '../../domain/clock.ts';
import { load } from '../../domain/handle.ts';
import { operationsFold } from '../../domain/operators/operations.ts';
import { streams } from '../../domain/streams.ts';
import type { EventStore, Position } from '../../domain/event-store.ts';
import type { HealthReports } from '../../api/dependencies.ts';
import {
  healthReport,
  liveness,
  pingCheck,
  readiness,
  refusingCheck,
  type HealthCheck,
} from '../../observability/health.ts';
import {
  projectionsCheck,
  schedulerCheck,
  type AuditState,
  workersCheck,
  type ProjectionState,
} from '../../observability/health-rules.ts';
import { shapeRead } from '../../projections/generations/older-shape.ts';
import {
  recallReport,
  type ProjectionReport,
} from '../../projections/projector/projection-report.ts';
import type { Projection, ReadModel } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import {
  parseReport,
  QUEUE_REPORT,
  SCHEDULER_REPORT,
  totals,
  type AuditReport,
} from '../../scheduler/audit/report.ts';
import type { Going } from '../roles/going.ts';
import { overdueTasks } from './overdue-tasks.ts';
import { shortageOf } from './slot-shortage.ts';
import { projections } from '../projecting/projections.ts';
import type { Stores } from '../stores.ts';

/** A view that is further behind than this, and does not move, is stuck. Seconds. */
const LAG_LIMIT = 30;

/** One that has not moved for so long does not move: a batch takes a moment, and two may look at once. Milliseconds. */
const STILL = 10_000;

/** A task that is due for longer than this and has no fire and no recorded reason is overdue. Milliseconds. */
const OVERDUE = 60_000;

/** What the health endpoints of a process say. What it finds is the same in each process: it asks the stores. */
export function createHealth(options: {
  readonly stores: Stores;
  readonly clock: Clock;
  readonly going: Going;
  readonly version: string;
  /** Random, of this start alone. */
  readonly instance: string;
  /** False until everything is opened, and once the process is stopping. */
  readonly started: () => boolean;
}): HealthReports {
  const { stores, clock, going, version, instance, started } = options;
  const { store, readModel, coordination } = stores;
  const lag = new ViewLag(store, readModel, clock);

  const storeChecks = (): Promise<HealthCheck[]> =>
    Promise.all([
      pingCheck('database', async () => {
        await Promise.all([readModel.ping(), coordination.ping()]);
      }),
      pingCheck('stream_store', () => store.ping()),
    ]);

  /** A log that takes nothing can still be read: that keeps nobody from being ready. */
  const withRefusal = (check: HealthCheck): HealthCheck => {
    const why = check.name === 'stream_store' ? stores.refusal() : null;
    return why === null || check.status !== 'healthy' ? check : refusingCheck(check.name, why);
  };

  const scheduler = async (): Promise<HealthCheck> => {
    const members = await coordination.alive();
    const led = members.some(({ about }) => hasRole(about['roles'], 'scheduler'));
    const { hold, released } = (await load(store, streams.operations(), operationsFold)).state;
    const before = clock.now() - OVERDUE;
    // What was due during a hold could be decided from its end on.
    const isLate = hold === null && (released === null || fromIso(released.at) < before);
    const overdue = isLate ? await overdueTasks(stores, before) : { count: 0, names: [] };
    const audit = auditState(parseReport(await coordination.recall(SCHEDULER_REPORT)));
    const queues = auditState(parseReport(await coordination.recall(QUEUE_REPORT)));
    return schedulerCheck({ led, hold, overdue, audit, queues, now: clock.now() });
  };

  const workers = async (): Promise<HealthCheck> => {
    const members = await coordination.alive();
    const alive = members.filter(({ about }) => hasRole(about['roles'], 'worker'));
    const waiting = await readModel.count(runsProjection, [
      { field: 'state', op: 'eq', value: 'queued' },
    ]);
    const shortage = await shortageOf(alive, readModel);
    return workersCheck({ alive: alive.length, waiting, shortage, now: clock.now() });
  };

  const views = async (): Promise<HealthCheck> => {
    const report = await recallReport(coordination, projections);
    const parked = new Map(report?.views.map((view) => [view.name, view.parked]));
    const states = await lag.look();
    const shown = states.map((state) => ({ ...state, parked: parked.get(state.name) ?? 0 }));
    const members = await coordination.alive();
    const led = members.some(({ about }) => hasRole(about['roles'], 'projector'));
    return projectionsCheck(shown, LAG_LIMIT, led);
  };

  const readable = async (): Promise<HealthCheck> =>
    viewsCheck(readModel, await recallReport(coordination, projections));

  return {
    report: shared(async () => {
      const stored = await storeChecks();
      const rest = await Promise.all([
        orUnhealthy('scheduler', stored, scheduler),
        orUnhealthy('workers', onlyDatabase(stored), workers),
        orUnhealthy('projections', stored, views),
      ]);
      const answer = healthReport([...stored.map(withRefusal), ...rest], {
        now: clock.now(),
        version,
      });
      return { status: answer.httpStatus, body: answer.body };
    }),
    ready: shared(async () => {
      const checks = await storeChecks();
      const waitedFor = going.notGoing();
      if (waitedFor.length > 0) checks.push(waitingCheck(waitedFor));
      else checks.push(await orUnhealthy('projections', onlyDatabase(checks), readable));
      const answer = readiness(checks, started());
      return { status: answer.httpStatus, body: answer.body };
    }),
    live: () => liveness({ now: clock.now(), version, instance }).body,
  };
}

/**
 * One look at a time: whoever asks while one is under way is told what that finds. Anybody may ask, as often as he
 * likes, and each look asks the stores some twenty things.
 */
function shared<T>(look: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | null = null;
  return () =>
    (underWay ??= look().finally(() => {
      underWay = null;
    }));
}

function auditState(report: AuditReport | null): AuditState | null {
  if (report === null) return null;
  const { at, faults, findings } = report;
  const kinds = Object.fromEntries(
    Object.entries(findings).map(([kind, { found }]) => [kind, found]),
  );
  const stuck = findings.task_stuck?.names ?? [];
  return { at, ...totals(report), faults: [...faults], stuck: [...stuck], kinds };
}

function waitingCheck(waitedFor: ReturnType<Going['notGoing']>): HealthCheck {
  const message = waitedFor
    .map(({ name, problem }) => (problem === null ? name : `${name}: ${problem}`))
    .join('; ');
  return { name: 'projections', status: 'unhealthy', message: `not yet: ${message}` };
}

/** What can't be read would be answered with 503: a view that was never made, or not in a shape that this code reads. */
async function viewsCheck(
  readModel: ReadModel,
  report: ProjectionReport | null,
): Promise<HealthCheck> {
  const shapes = await Promise.all(projections.map((each) => shapeRead(readModel, each)));
  const progress = ({ name }: Projection): string => {
    const making = report?.views.find((view) => view.name === name)?.rebuild?.progress;
    return making === undefined ? name : `${name} (${Math.floor(making * 100)} %)`;
  };
  const named = (which: (projection: Projection, index: number) => boolean): string =>
    projections.filter(which).map(progress).join(', ');
  const missing = named((_, index) => shapes[index] === null);
  if (missing !== '') {
    return { name: 'projections', status: 'unhealthy', message: `not yet made: ${missing}` };
  }
  const older = named(({ schema }, index) => shapes[index]?.schema !== schema);
  const message = older === '' ? 'there' : `there; in an older shape until made anew: ${older}`;
  return { name: 'projections', status: 'healthy', message };
}

/**
 * What was found, or why it can't be known. A store that did not answer its ping is not asked for more: one that has
 * fallen silent keeps whoever asks for as long as any operation may take.
 *
 * @param needed the checks of the stores that are asked
 */
async function orUnhealthy(
  name: HealthCheck['name'],
  needed: readonly HealthCheck[],
  look: () => Promise<HealthCheck>,
): Promise<HealthCheck> {
  const silent = needed.filter(({ status }) => status === 'unhealthy').map((check) => check.name);
  if (silent.length > 0) {
    const message = `can't be known: ${silent.join(' and ')} does not answer`;
    return { name, status: 'unhealthy', message };
  }
  try {
    return await look();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { name, status: 'unhealthy', message: `can't be known: ${message}` };
  }
}

const onlyDatabase = (stored: readonly HealthCheck[]): readonly HealthCheck[] =>
  stored.filter(({ name }) => name === 'database');

function hasRole(roles: unknown, role: string): boolean {
  return Array.isArray(roles) && roles.includes(role);
}

/** What the stores alone say of a view. */
type Place = Omit<ProjectionState, 'parked'>;

/** How far the views are behind the log, as time, and whether they move. Asks the stores alone. */
class ViewLag {
  private readonly store: EventStore;
  private readonly readModel: ReadModel;
  private readonly clock: Clock;
  /** Where each was found, and when it was there first. */
  private readonly found = new Map<string, { readonly position: Position; readonly at: number }>();

  constructor(store: EventStore, readModel: ReadModel, clock: Clock) {
    this.store = store;
    this.readModel = readModel;
    this.clock = clock;
  }

  async look(): Promise<readonly Place[]> {
    const head = await this.store.head();
    return Promise.all(projections.map((projection) => this.lookAt(projection, head)));
  }

  private async lookAt(projection: Projection, head: Position): Promise<Place> {
    const { name } = projection;
    const position = await this.readModel.checkpoint(projection);
    const now = this.clock.now();
    const before = this.found.get(name);
    // The clock may have been put back since.
    const at = before?.position === position ? Math.min(before.at, now) : now;
    this.found.set(name, { position, at });
    const progressed = now - at < STILL;
    const ahead = position > head && !(await this.store.reaches(position));
    return { name, lagSeconds: await this.lagOf(position, head), progressed, ahead };
  }

  private async lagOf(position: Position, head: Position): Promise<number> {
    if (position >= head) return 0;
    const [next] = await this.store.readAll(position, 1);
    if (next === undefined) return 0;
    return Math.max(0, this.clock.now() - Date.parse(next.metadata.occurredAt)) / 1000;
  }
}
