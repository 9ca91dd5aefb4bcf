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
import { SchedulePreview } from '../../schemas/answer-schemas-schedules.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, type Endpoint } from '../../endpoint.ts';
import { badRequest, notFound } from '../../errors.ts';
import { PreviewSchedule, scheduleFields } from '../../schemas/schedule-schemas.ts';
import { instantOf } from '../history/instant.ts';
import { textOf } from './task-records.ts';
import { checkDefinition } from './task-definitions.ts';

/** So long the fires of a preview may hold the event loop before others get a turn, and one more fire. Milliseconds. */
const TURN = 2;

/** What is previewed. */
interface Subject {
  readonly definition: TaskDefinition;
  /** Of a task that there is. */
  readonly anchor: string | null;
  readonly budget: Budget;
  readonly warnings: readonly string[];
  /** Whether it fires by time at all, and still. */
  readonly fires: boolean;
}

const preview = endpoint<PreviewSchedule>({
  method: 'post',
  paths: ['/schedules/preview'],
  operationId: 'previewSchedule',
  summary: 'Shows when a schedule, or that of a task, fires',
  scopes: ['tasks:read'],
  body: PreviewSchedule,
  answers: { 200: SchedulePreview },
  refusals: ['not_found'],
  async handle({ dependencies, body, context }) {
    const given =
      body.task_id === undefined
        ? givenSchedule(body, dependencies, context.now)
        : await taskSchedule(body.task_id.toLowerCase(), body, dependencies);
    const { definition, budget } = given;
    const from =
      body.from === undefined ? context.now : instantOf('from', body.from, definition.timezone);
    const anchor = given.anchor ?? anchorAt(from);
    const schedule = scheduleOf(definition, anchor);
    const steps = previewFires(schedule, from, given.fires ? (body.count ?? 10) : 0, budget);
    const fires = await inTurns(steps);
    const warnings = [...given.warnings, ...schedule.warnings];
    if (fires.length === 0 && (given.fires || definition.schedule_kind === 'event')) {
      warnings.push(emptyWarning(definition, from, budget));
    }
    return { body: { schedule_text: textOf(definition, anchor), fires, warnings } };
  },
});

export const scheduleEndpoints: readonly Endpoint[] = [preview];

/** A schedule that no task has yet, checked like that of a creation. */
function givenSchedule(
  { task_id: _task, from: _from, count: _count, ...fields }: PreviewSchedule,
  dependencies: ApiDependencies,
  now: Instant,
): Subject {
  const { schedule_kind: kind } = fields;
  if (kind === undefined) {
    throw badRequest([{ field: 'schedule_kind', issue: 'is required, or else task_id' }]);
  }
  const asked = { ...taskDefaults, ...nobody, ...fields, schedule_kind: kind };
  const { definition } = checkDefinition(asked, dependencies, now);
  const budget = wholeBudget(definition.max_runs);
  return { definition, anchor: null, budget, warnings: [], fires: kind !== 'event' };
}

/** What a task's definition needs and its schedule does not. */
const nobody = { title: '-', description: '-', created_by: '', payload: { pipeline: [] } };

/** The schedule of a task as it is now, with what is left of it. */
async function taskSchedule(
  id: string,
  body: PreviewSchedule,
  { store, tasks }: ApiDependencies,
): Promise<Subject> {
  const [beside] = Object.keys(scheduleFields).filter((field) => field in body);
  if (beside !== undefined) {
    throw badRequest([{ field: beside, issue: 'is not taken beside task_id' }]);
  }
  const [{ state }, [newest]] = await Promise.all([
    tasks.get(id),
    store.readStream(streams.fires(id), { direction: 'backwards', limit: 1 }),
  ]);
  if (state.status === 'none') throw notFound('task', id);
  // A stream holds the events of its kind alone.
  const last = (newest as unknown as (FiresEvent & EventPlace) | undefined) ?? null;
  const { definition, anchor } = state;
  const [budget, warnings] = [budgetOf(state, last), taskWarnings(state, last)];
  return { definition, anchor, budget, warnings, fires: firesByTime(state) };
}

const firesByTime = ({ status, definition }: LiveTask): boolean =>
  status !== 'canceled' && definition.schedule_kind !== 'event';

/** Takes all that a generator gives, and lets others have the event loop in between. */
async function inTurns(steps: Iterable<PreviewedFire>): Promise<readonly PreviewedFire[]> {
  const taken: PreviewedFire[] = [];
  let begun = performance.now();
  for (const step of steps) {
    taken.push(step);
    if (performance.now() - begun < TURN) continue;
    await new Promise((resolve) => setImmediate(resolve));
    begun = performance.now();
  }
  return taken;
}
