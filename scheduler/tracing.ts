import { EventStoreError, isConflict, type EventStore } from '../domain/event-store.ts';
import type { EventType, RunEvent } from '../domain/events/catalogue.ts';
import type { FiresDecision } from '../domain/tasks/fires.ts';
import type { ScheduleState } from '../domain/tasks/schedule-state.ts';
import { streams } from '../domain/streams.ts';
import type { Span, Traces } from '../observability/telemetry.ts';
import type { QueuedRun } from './runs/queued-run.ts';

/** How many events at a stream's end are searched for the causing event. */
const MAX_SEARCHED_EVENTS = 200;

/** The events that cause an attempt of a run. */
const requests: ReadonlySet<EventType> = new Set<EventType>(['RunRequested', 'RunRetried']);

/** The events that cause a delivery. */
const orders: ReadonlySet<EventType> = new Set<EventType>(['WebhookScheduled', 'WebhookRepeated']);

/**
 * Writes a decision within a span. The first fires after a command that set the schedule belong to the command's trace.
 * Later fires begin their own traces, linked to it, because a task may fire for years.
 * @param write receives the span whose `traceparent` the events carry
 */
export async function traceFire<T>(
  traces: Traces,
  store: EventStore,
  entry: { readonly taskId: string; readonly state: ScheduleState },
  decision: FiresDecision,
  write: (span: Span) => Promise<T>,
): Promise<T> {
  const { taskId, state } = entry;
  const { set, fires } = state;
  const from = { from: set.revision, limit: 1 };
  const [command] = await store.readStream(streams.task(taskId), from);
  const cause = command?.metadata.traceparent;
  const isFirst = fires === null || fires.task_revision < set.revision;
  const [run] = decision.runs;
  const span = traces.begin('fire', {
    kind: 'producer',
    ...(isFirst ? { parent: cause } : { links: cause === undefined ? [] : [cause] }),
    attributes: {
      'svc.task.id': taskId,
      'svc.run.id': run?.runId,
      'svc.fire.nominal': run?.request.scheduled_for ?? undefined,
      'svc.fire.runs': decision.runs.length,
    },
  });
  return inSpan(span, write);
}

/** The `traceparent` of a stream's first event. */
export async function firstTraceparent(
  store: EventStore,
  stream: string,
): Promise<string | undefined> {
  const [first] = await store.readStream(stream, { limit: 1 });
  return first?.metadata.traceparent;
}

/**
 * Begins the span of an attempt, in the trace of the run's request. A backfill requests thousands of runs, so each
 * begins its own trace, linked to the backfill's.
 */
export async function beginRun(traces: Traces, store: EventStore, run: QueuedRun): Promise<Span> {
  const limit = run.plain ? 1 : MAX_SEARCHED_EVENTS;
  const cause = await traceparentIn(store, streams.run(run.id), requests, limit);
  const isLinked = run.trigger === 'backfill';
  return traces.begin('run', {
    kind: 'consumer',
    ...(isLinked ? { links: cause === undefined ? [] : [cause] } : { parent: cause }),
    attributes: {
      'svc.run.id': run.id,
      'svc.run.trigger': run.trigger,
      'svc.run.attempt': run.attempt + 1,
      'svc.task.id': run.taskId,
    },
  });
}

/** Sets the outcome of an attempt on its span. */
export function traceEnd(span: Span, event: RunEvent): void {
  span.set({ 'svc.run.outcome': event.type });
  if (event.type === 'RunFailed' || event.type === 'RunAttemptFailed') {
    span.fail('run_failed', event.data.error);
  }
}

/** Delivers a webhook message within a span. */
export async function traceDelivery<T>(
  traces: Traces,
  store: EventStore,
  delivery: { readonly id: string; readonly agentId: string; readonly attempt: number },
  deliver: (span: Span) => Promise<T>,
): Promise<T> {
  const { id, agentId, attempt } = delivery;
  const span = traces.begin('deliver webhook', {
    kind: 'producer',
    parent: await traceparentIn(store, streams.webhook(id), orders, MAX_SEARCHED_EVENTS),
    attributes: {
      'svc.delivery.id': id,
      'svc.delivery.attempt': attempt,
      'svc.agent.id': agentId,
    },
  });
  return inSpan(span, deliver);
}

/**
 * Runs a step within a span.
 * @param uses the step's tool
 * @param name the step, or the item of a `for_each`
 * @param errorOf its error, or an empty string
 */
export function traceStep<T extends { readonly kind: string }>(
  parent: Span,
  errorOf: (name: string) => string,
  uses: string,
  name: string,
  work: (span: Span) => T | Promise<T>,
): T | Promise<T> {
  const span = parent.child(`step ${uses}`, { attributes: { 'svc.step': name, 'svc.tool': uses } });
  const end = (outcome: T): T => {
    const error = errorOf(name);
    // A failed step marks its span even with `on_error: continue`, where the run continues.
    if (error !== '') span.fail('step_failed', error);
    if (outcome.kind === 'aborted') span.set({ 'svc.step.aborted': true });
    span.end();
    return outcome;
  };
  const outcome = work(span);
  if (!(outcome instanceof Promise)) return end(outcome);
  return outcome.then(end, (error: unknown) => {
    failBy(span, error);
    span.end();
    throw error;
  });
}

/**
 * Sends an HTTP request within a span. The span omits path and query, which may hold tokens.
 * @param to the origin, with a masked host if that holds a secret
 * @param send adds the span's headers, and resolves when the response begins
 */
export async function traceRequest<T extends { readonly statusCode: number }>(
  parent: Span,
  method: string,
  to: Pick<URL, 'protocol' | 'hostname' | 'port'>,
  send: (span: Span) => Promise<T>,
): Promise<T> {
  const { protocol, hostname, port } = to;
  const span = parent.child(method, {
    kind: 'client',
    attributes: {
      'http.request.method': method,
      'url.scheme': protocol.slice(0, -1),
      'server.address': hostname,
      'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    },
  });
  return inSpan(span, async () => {
    const answer = await send(span);
    const { statusCode } = answer;
    span.set({ 'http.response.status_code': statusCode });
    if (statusCode >= 400) span.fail(String(statusCode));
    return answer;
  });
}

/** Marks a span as failed with an error's code or name. Messages may hold secrets and are left out. */
export function failBy(span: Span, error: unknown): void {
  // A lost race is not a failure: the winner continues.
  if (isConflict(error)) span.set({ 'svc.lost_race': true });
  else span.fail(typeOf(error), error instanceof EventStoreError ? error.message : undefined);
}

function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return code === '' ? error.name : code;
}

async function inSpan<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await work(span);
  } catch (error) {
    failBy(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** The `traceparent` of the last event of these types in a stream, if there is one. */
async function traceparentIn(
  store: EventStore,
  stream: string,
  types: ReadonlySet<EventType>,
  limit: number,
): Promise<string | undefined> {
  const last = await store.readStream(stream, { direction: 'backwards', limit });
  const found = last.find(({ type }) => types.has(type));
  if (found !== undefined || last.length < limit) return found?.metadata.traceparent;
  return firstTraceparent(store, stream);
}
