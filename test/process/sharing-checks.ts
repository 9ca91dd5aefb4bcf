import type { RecordedEvent } from '../../domain/event-store.ts';
import type { CreatedTask, Sharing } from './killing/kill-tasks.ts';
import { faultsOfExclusion } from './killing/exclusion-checks.ts';
import type { Ledger, LoggedRun } from './ledger.ts';

/*
 * The invariants of runs that share something. They are checked in the runs' own streams, independently of the
 * streams of keys that the service uses.
 */

/** Whether a run may end without success because of what it shares. */
export function mayEndBy(end: RecordedEvent, shares: Sharing | undefined): boolean {
  if (end.type === 'RunSkipped') {
    const { reason } = end.data;
    if (reason === 'duplicate') return shares?.kind === 'dedupe';
    return reason === 'overlap' && shares?.kind === 'overlap' && shares.policy !== 'cancel_running';
  }
  if (end.type !== 'RunCanceled') return false;
  return shares?.kind === 'overlap' && shares.policy === 'cancel_running';
}

/** Runs with a shared slot never overlap, and a skipped run names the existing run that caused it. */
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
        : [
            ...faultsOfExclusion(ledger, new Set(members.map(({ id }) => id)), 1),
            ...faultsOfOverlap(ledger, runs),
          ];
    return faults.map((fault) => `${name}: ${fault}`);
  });
}

/**
 * A command can read events that were recorded this long before it started. Events have the time at which their commit
 * started, not the time at which it ended. Milliseconds.
 */
const COMMITTED_BY = 6_000;

/**
 * A run because of which another was skipped was unfinished at that time. A run is canceled only because of another run
 * of the task.
 */
function faultsOfOverlap(ledger: Ledger, runs: readonly LoggedRun[]): string[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const places = new Map(ledger.events.map(({ id, position }) => [id, position]));
  const fires = new Map(ledger.all('Fired').map(({ data, position }) => [data.run_id, position]));
  // The run may have ended between the decision and its record. The time at which the commit of its end started does
  // not say when the end was visible.
  const wasOver = (ended: RecordedEvent, id: string, skipped: RecordedEvent): boolean => {
    const cause = places.get(skipped.metadata.$causationId ?? '') ?? fires.get(id);
    if (cause !== undefined && ended.position < cause) return true;
    const begun = Date.parse(skipped.metadata.occurredAt);
    return ended.position < skipped.position && Date.parse(ended.createdAt) + COMMITTED_BY < begun;
  };
  return runs.flatMap(({ id, events, end }) => {
    if (end?.type === 'RunSkipped' && end.data.reason === 'overlap') {
      const other = byId.get(end.data.because_of ?? '');
      if (other === undefined) return [`${id} was skipped because of a run that does not exist`];
      const over = other.end !== undefined && wasOver(other.end, id, end);
      return over ? [`${id} was skipped because of ${other.id}, which had ended`] : [];
    }
    if (end?.type !== 'RunCanceled') return [];
    const request = events.find(({ type }) => type === 'RunCancelRequested') ?? end;
    const other = String(request.metadata.$causationId);
    return other !== id && byId.has(other) ? [] : [`${id} was canceled because of ${other}`];
  });
}

/**
 * Each window starts at the latest nominal time at which the key was used. A duplicate names a run that used the key
 * within the window.
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
    if (other?.request.type !== 'RunRequested')
      faults.push(`${id} is a duplicate of a run that does not exist`);
    else if (Math.abs(at(run) - at(other)) >= windowMs) {
      faults.push(`${id} is a duplicate of ${other.id}, which is outside of the window`);
    }
  }
  return faults;
}
