import { fromIso, type Clock } from '../../domain/clock.ts';
import { agentFold } from '../../domain/agents/agent.ts';
import { load } from '../../domain/handle.ts';
import { serverProblemOf } from '../../domain/server-problem.ts';
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
import { nameOfAgent } from '../../projections/reading/names.ts';
import { errorMessage } from '../../projections/error-message.ts';
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
import type { Supervisor } from '../roles/supervisor.ts';
import { overdueTasks } from './overdue-tasks.ts';
import { shortageOf } from './slot-shortage.ts';
import { projections } from '../projecting/projections.ts';
import type { Stores } from '../stores.ts';

/** Seconds. A view that is further behind and does not move is stuck. */
const MAX_LAG_SECONDS = 30;

/** Milliseconds without movement after which a view counts as not moving. */
const STUCK_MS = 10_000;

/** Milliseconds for which a task may be due, with neither a fire nor a recorded reason, before it is overdue. */
const OVERDUE_MS = 60_000;

/** The health endpoints of a process. Their answers come from the stores, so they are the same in every process. */
export function createHealth(options: {
  readonly stores: Stores;
  readonly clock: Clock;
  readonly supervisor: Supervisor;
  readonly version: string;
  /** Random, new at each start. */
  readonly instance: string;
  /** False until everything is open, and once the process is stopping. */
  readonly started: () => boolean;
}): HealthReports {
  const { stores, clock, supervisor, version, instance, started } = options;
  const { store, readModel, coordination } = stores;
  const lags = new ViewLags(store, readModel, clock);

  const storeChecks = (): Promise<HealthCheck[]> =>
    Promise.all([
      pingCheck('database', async () => {
        await Promise.all([readModel.ping(), coordination.ping()]);
      }),
      pingCheck('stream_store', () => store.ping()),
    ]);

  /** A log that rejects writes can still be read, so the process stays ready. */
  const withRefusal = (check: HealthCheck): HealthCheck => {
    const why = check.name === 'stream_store' ? stores.refusal() : null;
    return why === null || check.status !== 'healthy' ? check : refusingCheck(check.name, why);
  };

  const scheduler = async (): Promise<HealthCheck> => {
    const members = await coordination.alive();
    const isLed = members.some(({ about }) => hasRole(about['roles'], 'scheduler'));
    const { hold, released } = (await load(store, streams.operations(), operationsFold)).state;
    const before = clock.now() - OVERDUE_MS;
    // Fires that came due during a hold could only be decided after it.
    const isLate = hold === null && (released === null || fromIso(released.at) < before);
    const overdue = isLate ? await overdueTasks(stores, before) : { count: 0, names: [] };
    const audit = auditStateOf(parseReport(await coordination.recall(SCHEDULER_REPORT)));
    const queues = auditStateOf(parseReport(await coordination.recall(QUEUE_REPORT)));
    const shown = hold && { ...hold, by_name: await nameOf(store, hold.by) };
    return schedulerCheck({ led: isLed, hold: shown, overdue, audit, queues, now: clock.now() });
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
    const states = await lags.check();
    const shown = states.map((state) => ({ ...state, parked: parked.get(state.name) ?? 0 }));
    const members = await coordination.alive();
    const isLed = members.some(({ about }) => hasRole(about['roles'], 'projector'));
    return projectionsCheck(shown, MAX_LAG_SECONDS, isLed);
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
      const waitedFor = supervisor.notRunning();
      if (waitedFor.length > 0) checks.push(waitingCheck(waitedFor));
      else checks.push(await orUnhealthy('projections', onlyDatabase(checks), readable));
      const answer = readiness(checks, started());
      return { status: answer.httpStatus, body: answer.body };
    }),
    live: () => liveness({ now: clock.now(), version, instance }).body,
  };
}

/**
 * Shares one check among concurrent callers: anyone may call, as often as they like, and a check queries the stores
 * some twenty times.
 */
function shared<T>(look: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () =>
    (running ??= look().finally(() => {
      running = null;
    }));
}

function auditStateOf(report: AuditReport | null): AuditState | null {
  if (report === null) return null;
  const { at, faults, findings } = report;
  const kinds = Object.fromEntries(
    Object.entries(findings).map(([kind, { found }]) => [kind, found]),
  );
  const stuck = findings.task_stuck?.names ?? [];
  return { at, ...totals(report), faults: [...faults], stuck: [...stuck], kinds };
}

/** The name of an agent; null if there is none, or if it cannot be read: the hold must be shown in any case. */
async function nameOf(store: EventStore, agentId: string): Promise<string | null> {
  return load(store, streams.agent(agentId), agentFold).then(
    ({ state }) => nameOfAgent(state),
    () => null,
  );
}

function waitingCheck(waitedFor: ReturnType<Supervisor['notRunning']>): HealthCheck {
  const message = waitedFor
    .map(({ name, problem }) => (problem === null ? name : `${name}: ${problem}`))
    .join('; ');
  return { name: 'projections', status: 'unhealthy', message: `not ready: ${message}` };
}

/** A view that was never built, or only in a shape that this code cannot read, would be answered with 503. */
async function viewsCheck(
  readModel: ReadModel,
  report: ProjectionReport | null,
): Promise<HealthCheck> {
  const shapes = await Promise.all(projections.map((each) => shapeRead(readModel, each)));
  const withProgress = ({ name }: Projection): string => {
    const progress = report?.views.find((view) => view.name === name)?.rebuild?.progress;
    return progress === undefined ? name : `${name} (${Math.floor(progress * 100)} %)`;
  };
  const named = (which: (projection: Projection, index: number) => boolean): string =>
    projections.filter(which).map(withProgress).join(', ');
  const missing = named((_, index) => shapes[index] === null);
  if (missing !== '') {
    return { name: 'projections', status: 'unhealthy', message: `not built yet: ${missing}` };
  }
  const older = named(({ schema }, index) => shapes[index]?.schema !== schema);
  const message = older === '' ? 'readable' : `readable; in an older shape until rebuilt: ${older}`;
  return { name: 'projections', status: 'healthy', message };
}

/**
 * The check, or why it could not be made. A store that did not answer its ping is not queried: each query could block
 * for as long as any operation may take.
 *
 * @param needed the checks of the stores that it queries
 */
async function orUnhealthy(
  name: HealthCheck['name'],
  needed: readonly HealthCheck[],
  look: () => Promise<HealthCheck>,
): Promise<HealthCheck> {
  const silent = needed.filter(({ status }) => status === 'unhealthy').map((check) => check.name);
  if (silent.length > 0) {
    const message = `unknown: ${silent.join(' and ')} did not answer`;
    return { name, status: 'unhealthy', message };
  }
  try {
    return await look();
  } catch (error) {
    const message = serverProblemOf(error)?.summary ?? errorMessage(error);
    return { name, status: 'unhealthy', message: `unknown: ${message}` };
  }
}

const onlyDatabase = (stored: readonly HealthCheck[]): readonly HealthCheck[] =>
  stored.filter(({ name }) => name === 'database');

function hasRole(roles: unknown, role: string): boolean {
  return Array.isArray(roles) && roles.includes(role);
}

/** The state of a view in the stores. */
type Place = Omit<ProjectionState, 'parked'>;

/** How far the views are behind the log in time, and whether they move. */
class ViewLags {
  readonly #store: EventStore;
  readonly #readModel: ReadModel;
  readonly #clock: Clock;
  /** The last position of each view, and since when it has been there. */
  readonly #found = new Map<string, { readonly position: Position; readonly at: number }>();

  constructor(store: EventStore, readModel: ReadModel, clock: Clock) {
    this.#store = store;
    this.#readModel = readModel;
    this.#clock = clock;
  }

  async check(): Promise<readonly Place[]> {
    const head = await this.#store.head();
    return Promise.all(projections.map((projection) => this.#checkView(projection, head)));
  }

  async #checkView(projection: Projection, head: Position): Promise<Place> {
    const { name } = projection;
    const position = await this.#readModel.checkpoint(projection);
    const now = this.#clock.now();
    const before = this.#found.get(name);
    // The clock may have been set back.
    const at = before?.position === position ? Math.min(before.at, now) : now;
    this.#found.set(name, { position, at });
    const progressed = now - at < STUCK_MS;
    const ahead = position > head && !(await this.#store.reaches(position));
    return { name, lagSeconds: await this.#lagOf(position, head), progressed, ahead };
  }

  async #lagOf(position: Position, head: Position): Promise<number> {
    if (position >= head) return 0;
    const [next] = await this.#store.readAll(position, 1);
    if (next === undefined) return 0;
    return Math.max(0, this.#clock.now() - Date.parse(next.metadata.occurredAt)) / 1000;
  }
}
