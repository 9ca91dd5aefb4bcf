import type { Received } from './demo-receiver.ts';
import type { DemoOutcome, TaskWithRuns } from './demo-scenario.ts';

/** What went wrong, a line each; empty if nothing did. */
export function problemsOf(
  { tasks, eventId, triggered, triggeredRun }: DemoOutcome,
  received: readonly Received[],
): readonly string[] {
  const eventTask = tasks.find(({ kind }) => kind === 'event');
  const carried = triggeredRun.find((event) => event.type === 'RunRequested')?.data.event?.id;
  return [
    ...tasks.flatMap(problemsOfTask),
    ...(eventTask !== undefined && triggered.join() === eventTask.id
      ? []
      : [`the event should only trigger the event task, but triggered [${triggered.join(', ')}]`]),
    ...(carried === eventId
      ? []
      : [`the event's run should carry the event ${eventId}, but carries ${carried ?? 'none'}`]),
    ...problemsOfCalls(received),
  ];
}

function problemsOfTask({ kind, runs, seen }: TaskWithRuns): readonly string[] {
  const count =
    seen.length === runs ? [] : [`the ${kind} task should run ${runs} times, not ${seen.length}`];
  const bad = seen
    .filter(({ state }) => state !== 'succeeded')
    .map(({ id, state, error }) => {
      const why = error === null ? '' : `: ${error}`;
      return `run ${id} of the ${kind} task should succeed, but is ${state}${why}`;
    });
  return [...count, ...bad];
}

function problemsOfCalls(received: readonly Received[]): readonly string[] {
  const answers = received.map(({ status }) => status).join(', ');
  if (answers !== '503, 200') {
    const sent = answers === '' ? 'nothing' : answers;
    return [`the HTTP server should be called until it answers 200, but answered ${sent}`];
  }
  const [first, second] = received;
  return first !== undefined && first.idempotencyKey !== '' && sameCall(first, second)
    ? []
    : ['both attempts should make the same call, with the same Idempotency-Key'];
}

function sameCall(one: Received, other: Received | undefined): boolean {
  return one.idempotencyKey === other?.idempotencyKey && one.body === other.body;
}
