import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DemoRun, TaskWithRuns } from './demo-scenario.ts';
import { table } from '../cli/terminal/table.ts';

/** All runs of the demo in the order of their starts. */
export function runsTable(tasks: readonly TaskWithRuns[]): string {
  const runs = tasks
    .flatMap(({ kind, seen }) => seen.map((run) => ({ kind, run })))
    .sort((a, b) => startOf(a.run).localeCompare(startOf(b.run)));
  return table(
    [
      { title: 'kind' },
      { title: 'trigger' },
      { title: 'nominal time' },
      { title: 'started' },
      { title: 'late', align: 'right' },
      { title: 'took', align: 'right' },
      { title: 'attempts', align: 'right' },
      { title: 'state' },
      { title: 'results of the steps', maxWidth: 44 },
    ],
    runs.map(({ kind, run }) => [
      kind,
      run.trigger,
      timeOf(run.scheduled_for),
      timeOf(run.started_at),
      between(run.scheduled_for, run.started_at),
      between(run.started_at, run.finished_at),
      run.attempt,
      run.state,
      JSON.stringify(run.output?.steps ?? run.error),
    ]),
  );
}

/** The events of a stream with their content. */
export function streamTable(events: readonly RecordedEvent[]): string {
  return table(
    [
      { title: 'rev', align: 'right' },
      { title: 'position' },
      { title: 'at' },
      { title: 'type' },
      { title: 'content', maxWidth: 74 },
    ],
    events.map((event) => [
      event.revision,
      event.position,
      timeOf(event.metadata.occurredAt),
      event.type,
      contentOf(event),
    ]),
  );
}

/** The content of an event, in short. */
function contentOf(event: RecordedEvent): string {
  switch (event.type) {
    case 'RunRequested':
      return `trigger ${event.data.trigger}, task at revision ${event.data.task_revision}`;
    case 'RunStarted':
      return `attempt ${event.data.attempt}`;
    case 'RunStepCompleted':
      return `step ${event.data.step} ${event.data.status}`;
    case 'RunAttemptFailed':
      return `retry at ${timeOf(event.data.retry_at)}: ${event.data.error}`;
    case 'RunSucceeded':
      return event.data.steps.map(({ step, status }) => `step ${step} ${status}`).join(', ');
    case 'RunFailed':
      return event.data.error;
    default:
      return '';
  }
}

const startOf = (run: DemoRun): string => run.started_at ?? '~';

/** `hh:mm:ss.sss` of a timestamp. */
const timeOf = (timestamp: string | null): string => timestamp?.slice(11, 23) ?? '';

function between(from: string | null, to: string | null): string {
  return from === null || to === null ? '' : `${Date.parse(to) - Date.parse(from)} ms`;
}
