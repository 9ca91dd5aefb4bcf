import { DEFAULT_NAMESPACE } from '../../../domain/namespaces/namespace.ts';
import type { Instant } from '../../../domain/clock.ts';
import type { FiresEvent } from '../../../domain/events/catalogue.ts';
import {
  budgetOf,
  emptyWarning,
  previewFires,
  taskWarnings,
  wholeBudget,
  type Budget,
  type PreviewedFire,
} from '../../../domain/tasks/preview.ts';
import type { EventPlace } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { anchorAt, type LiveTask } from '../../../domain/tasks/task.ts';
import { scheduleOf } from '../../../domain/tasks/task-schedule.ts';
import { taskDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { SchedulePreview } from '../../schemas/response-schemas-schedules.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, type Call, type Endpoint } from '../../endpoint.ts';
import { badRequest, notFound } from '../../errors.ts';
import { PreviewSchedule, scheduleFields } from '../../schemas/schedule-schemas.ts';
import { instantOf } from '../history/instant.ts';
import { inReach } from '../lookup.ts';
import { wordsOf } from './task-records.ts';
import { checkDefinition } from './task-definitions.ts';

/** How long a preview may compute before other requests get a turn. Milliseconds. */
const MAX_TURN = 2;

/** The schedule to preview. */
interface Subject {
  readonly definition: TaskDefinition;
  /** null: no task has the schedule. */
  readonly anchor: string | null;
  readonly budget: Budget;
  readonly warnings: readonly string[];
  /** Whether it still fires by time. */
  readonly fires: boolean;
}

const preview = endpoint('POST /schedules/preview', {
  operationId: 'previewSchedule',
  summary: 'Shows when a schedule, or the schedule of a task, fires',
  scopes: ['tasks:read'],
  body: PreviewSchedule,
  responses: { 200: SchedulePreview },
  refusals: ['not_found'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const subject =
      body.task_id === undefined
        ? givenSchedule(body, dependencies, context.now)
        : await taskSchedule(body.task_id.toLowerCase(), body, call);
    const { definition, budget, fires: isActive } = subject;
    const from =
      body.from === undefined ? context.now : instantOf('from', body.from, definition.timezone);
    const anchor = subject.anchor ?? anchorAt(from);
    const schedule = scheduleOf(definition, anchor);
    const count = isActive ? (body.count ?? 10) : 0;
    const fires = await collectInTurns(previewFires(schedule, from, count, budget));
    const warnings = [...subject.warnings, ...schedule.warnings];
    if (fires.length === 0 && (isActive || definition.schedule_kind === 'event')) {
      warnings.push(emptyWarning(definition, from, budget));
    }
    return { body: { schedule_text: wordsOf(definition, anchor), fires, warnings } };
  },
});

export const scheduleEndpoints: readonly Endpoint[] = [preview];

/** A schedule without a task, checked in the same way as at the creation of a task. */
function givenSchedule(
  { task_id: _task, from: _from, count: _count, ...fields }: PreviewSchedule,
  dependencies: ApiDependencies,
  now: Instant,
): Subject {
  const { schedule_kind: kind } = fields;
  if (kind === undefined) {
    throw badRequest([{ field: 'schedule_kind', issue: 'is required, unless task_id is given' }]);
  }
  const given = { ...taskDefaults, ...placeholders, ...fields, schedule_kind: kind };
  // It has no pipeline, so the tools of workers do not matter.
  const place = { namespace: DEFAULT_NAMESPACE, now };
  const { definition } = checkDefinition(given, dependencies, place);
  const budget = wholeBudget(definition.max_runs);
  return { definition, anchor: null, budget, warnings: [], fires: kind !== 'event' };
}

/** Fields of a task that do not matter to its schedule. */
const placeholders = { title: '-', description: '-', created_by: '', payload: { pipeline: [] } };

/** The present schedule of a task, with its remaining runs. */
async function taskSchedule(
  id: string,
  body: PreviewSchedule,
  call: Pick<Call, 'dependencies' | 'reach' | 'own'>,
): Promise<Subject> {
  const [beside] = Object.keys(scheduleFields).filter((field) => field in body);
  if (beside !== undefined) {
    throw badRequest([{ field: beside, issue: 'must not be given together with task_id' }]);
  }
  const { store, tasks } = call.dependencies;
  const [{ state }, [newest]] = await Promise.all([
    tasks.get(id),
    store.readStream(streams.fires(id), { direction: 'backwards', limit: 1 }),
  ]);
  if (state.status === 'none') throw notFound('task', id);
  inReach(call, 'task', id, state);
  const last = (newest as unknown as (FiresEvent & EventPlace) | undefined) ?? null;
  const { definition, anchor } = state;
  const [budget, warnings] = [budgetOf(state, last), taskWarnings(state, last)];
  return { definition, anchor, budget, warnings, fires: firesByTime(state) };
}

const firesByTime = ({ status, definition }: LiveTask): boolean =>
  status !== 'canceled' && definition.schedule_kind !== 'event';

/** Collects the values of a generator, and gives other requests turns in between. */
async function collectInTurns(steps: Iterable<PreviewedFire>): Promise<readonly PreviewedFire[]> {
  const collected: PreviewedFire[] = [];
  let begun = performance.now();
  for (const step of steps) {
    collected.push(step);
    if (performance.now() - begun < MAX_TURN) continue;
    await new Promise((resolve) => setImmediate(resolve));
    begun = performance.now();
  }
  return collected;
}
