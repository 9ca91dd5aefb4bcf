import type { RecordedEvent } from '../../domain/event-store.ts';
import type { CreatedTask, Sharing } from './killing/kill-tasks.ts';
import { isEnding, type Ledger, type LoggedRun } from './ledger.ts';

/*
 * What must hold of runs that share something, told from their own streams: the streams of the keys that the service
 * goes by are not looked at.
 */

/** Whether a run may end otherwise than by success, for the sake of what it shares. */
export function mayEndBy(end: RecordedEvent, shares: Sharing | undefined): boolean {
  if (end.type === 'RunSkipped') {
    const { reason } = end.data;
    if (reason === 'duplicate') return shares?.kind === 'dedupe';
    return reason === 'overlap' && shares?.kind === 'overlap' && shares.policy !== 'cancel_running';
  }
  if (end.type !== 'RunCanceled') return false;
  return shares?.kind === 'overlap' && shares.policy === 'cancel_running';
}

/** Who shares a slot never runs at a time; who gave way did so to one that was there. */
export function faultsOfSharing(ledger: Ledger, tasks: readonly CreatedTask[]): string[] {
  const runsOf = (members: readonly CreatedTask[]): LoggedRun[] =>
    ledger.runs().filter(({ request }) => members.some(({ id }) => id === request.data.task_id));
  const groups = new Map<string, CreatedTask[]>();
  for (const task of tasks) {
    if (task.shares === undefined) continue;
    const name = task.shares.kind === 'concurrency' ? task.shares.key : task.name;
    groups.set(name, [...(groups.get(name) ?? []), task]);
  }
  return [...groups].flatMap(([name, members]) => {
    const shares = members[0]?.shares;
    const runs = runsOf(members);
    const faults =
      shares?.kind === 'dedupe'
        ? faultsOfDedupe(runs, shares.windowSeconds * 1000)
        : [...faultsOfExclusion(ledger, runs), ...faultsOfOverlap(ledger, runs)];
    return faults.map((fault) => `${name}: ${fault}`);
  });
}

/** One at a time: one that was interrupted keeps its place, as it goes on elsewhere. */
function faultsOfExclusion(ledger: Ledger, runs: readonly LoggedRun[]): string[] {
  const streams = new Set(runs.map(({ id }) => `run-${id}`));
  const running = new Set<string>();
  const faults: string[] = [];
  for (const event of ledger.events) {
    if (!streams.has(event.stream)) continue;
    if (event.type === 'RunStarted') {
      running.add(event.stream);
      if (running.size > 1) faults.push(`${[...running].join(' and ')} run at ${event.position}`);
    } else if (isEnding(event) || event.type === 'RunAttemptFailed') {
      running.delete(event.stream);
    }
  }
  return faults;
}

/**
 * What was in the log so long before a command began was there for it to be read: an event has the time at which its
 * commit began, which takes a while. Milliseconds.
 */
const COMMITTED_BY = 1_000;

/** Whom a run gave way to was not over then; whom one was canceled for is another run of the task. */
function faultsOfOverlap(ledger: Ledger, runs: readonly LoggedRun[]): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const places = new Map(ledger.events.map(({ id, position }) => [id, position]));
  const fires = new Map(ledger.all('Fired').map(({ data, position }) => [data.run_id, position]));
  // It may have ended between the decision and its record; when its end was begun says nothing of when it was there.
  const wasOver = (ended: RecordedEvent, id: string, skipped: RecordedEvent): boolean => {
    const cause = places.get(skipped.metadata.$causationId ?? '') ?? fires.get(id);
    if (cause !== undefined && ended.position < cause) return true;
    const begun = Date.parse(skipped.metadata.occurredAt);
    return ended.position < skipped.position && Date.parse(ended.createdAt) + COMMITTED_BY < begun;
  };
  return runs.flatMap(({ id, events, end }) => {
    if (end?.type === 'RunSkipped' && end.data.reason === 'overlap') {
      const other = byId.get(end.data.because_of ?? '');
      if (other === undefined) return [`${id} gave way to nothing`];
      const over = other.end !== undefined && wasOver(other.end, id, end);
      return over ? [`${id} gave way to ${other.id}, which was over`] : [];
    }
    if (end?.type !== 'RunCanceled') return [];
    const told = events.find(({ type }) => type === 'RunCancelRequested') ?? end;
    const other = String(told.metadata.$causationId);
    return other !== id && byId.has(other) ? [] : [`${id} was canceled for ${other}`];
  });
}

/**
 * Each use counts from the latest nominal time at which the key was used; a duplicate names a run that used it, not
 * further away than the window.
 */
function faultsOfDedupe(runs: readonly LoggedRun[], windowMs: number): string[] {
  const faults: string[] = [];
  const at = ({ request }: LoggedRun): number => Date.parse(request.data.scheduled_for ?? '');
  const byId = new Map(runs.map((run) => [run.id, run]));
  let latest = Number.NEGATIVE_INFINITY;
  const inOrder = runs.toSorted((a, b) => (a.request.position < b.request.position ? -1 : 1));
  for (const run of inOrder) {
    const { id, request } = run;
    if (request.type === 'RunRequested') {
      if (Math.abs(at(run) - latest) < windowMs) faults.push(`${id} was used within the window`);
      latest = Math.max(latest, at(run));
      continue;
    }
    const other = byId.get(request.data.because_of ?? '');
    if (other?.request.type !== 'RunRequested') faults.push(`${id} is a duplicate of none`);
    else if (Math.abs(at(run) - at(other)) >= windowMs) {
      faults.push(`${id} is a duplicate of ${other.id}, which is outside of the window`);
    }
  }
  return faults;
}
