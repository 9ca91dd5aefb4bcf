import { toIso, type Instant } from '../clock.ts';
import type { RecordedEvent } from '../event-store.ts';
import { truncateString } from '../pipeline/json-size.ts';
import type { Fire } from '../schedule/schedule.ts';
import { zoneOf, type Zone } from '../schedule/zone.ts';
import type { RunTrigger } from '../vocabulary.ts';

const units: readonly (readonly [name: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
];

/** A duration in its two largest units: `3 d 2 h`, `1 min 5 s`, `0.4 s`. @param ms milliseconds */
export function duration(ms: number): string {
  const seconds = Math.abs(ms) / 1000;
  if (seconds < 10) return `${Number(seconds.toFixed(1))} s`;
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [name, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

/** `1 fire`, `4,320 fires`. */
export function counted(count: number, thing: string): string {
  return `${count.toLocaleString('en-US')} ${thing}${count === 1 ? '' : 's'}`;
}

/** The effect of a clock change on a fire, or on a time before it; empty if there was none. */
export function noteOf(fire: Pick<Fire, 'note'> | null): readonly string[] {
  const note = fire?.note ?? null;
  return note === null ? [] : [`A clock change is near: ${note}.`];
}

/** The first line of a string from the log, shortened. */
export function excerpt(text: string, most = 200): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length > most ? `${truncateString(line, most)}…` : line;
}

/** Writes the instants and agents of one task's explanation. */
export class Words {
  readonly #zone: Zone | null;
  readonly #names: ReadonlyMap<string, string>;
  /**
   * The condition for which runs of the task wait when they are ready to start, such as a slot; null: none in
   * particular.
   */
  readonly readyRunsWaitFor: string | null;

  /**
   * @param timezone the task's time zone at that time, in which instants are written
   * @param names of agents, by their ids
   * @param readyRunsWaitFor as the object of `waits for`
   */
  constructor(
    timezone: string,
    names: ReadonlyMap<string, string>,
    readyRunsWaitFor: string | null = null,
  ) {
    this.readyRunsWaitFor = readyRunsWaitFor;
    const zone = zoneOf(timezone);
    this.#zone = zone === null || /^(etc\/)?utc$/i.test(zone.name) ? null : zone;
    this.#names = names;
  }

  /** An instant: `2026-03-02T09:00:00Z`, or `2026-03-02T10:00:00+01:00` in the task's zone. */
  when(instant: Instant): string {
    if (this.#zone !== null) return this.#zone.localText(instant);
    return toIso(instant).replace('.000Z', 'Z');
  }

  /** A timestamp of the log. */
  at(text: string): string {
    return this.when(Date.parse(text));
  }

  /** When an event occurred. */
  time(event: RecordedEvent): string {
    return this.at(event.metadata.occurredAt);
  }

  /** The agent that caused an event, and the reason: `by ada (01a1…), reason: "maintenance"`. */
  by(event: RecordedEvent): string {
    const reason = reasonOf(event);
    return `by ${this.#who(event)}${reason === null ? '' : `, reason: "${reason}"`}`;
  }

  /** An action, with its agent, time and reason: `ada (01a1…) paused the task at 2026-… (reason: "maintenance").` */
  act(event: RecordedEvent, did: string): string {
    const who = this.#who(event).replace(
      /^(the |agent )/,
      (word) => `${word[0]?.toUpperCase()}${word.slice(1)}`,
    );
    const cause = isByFailures(event) ? ' after too many failures' : pauseCauseOf(event);
    const reason = reasonOf(event);
    const why = reason === null ? '' : ` (reason: "${reason}")`;
    return `${who} ${did} at ${this.time(event)}${cause}${why}.`;
  }

  #who(event: RecordedEvent): string {
    const { actor } = event.metadata;
    if (actor === 'service' || isByFailures(event)) return 'the service';
    const name = this.#names.get(actor);
    return name === undefined ? `agent ${actor}` : `${name} (${actor})`;
  }
}

const isByFailures = (event: RecordedEvent): boolean =>
  event.type === 'TaskPaused' && event.data.by_failures;

/** Why the service paused a task whose agent may no longer have it. */
function pauseCauseOf(event: RecordedEvent): string {
  const cause = event.type === 'TaskPaused' ? event.data.cause : undefined;
  if (cause === undefined) return '';
  return cause === 'scope_lost'
    ? ' because its agent had lost the scope tasks:write'
    : ' because its agent had been removed';
}

/** Events of early releases have the reason of a hold only in the data. */
function reasonOf(event: RecordedEvent): string | null {
  const { reason } = event.metadata;
  if (reason !== undefined) return excerpt(reason);
  return event.type === 'OperationsHeld' ? excerpt(event.data.reason) : null;
}

/** How a run was requested. */
export const triggerWords: Readonly<Record<RunTrigger, string>> = {
  schedule: 'by the schedule',
  manual: 'manually',
  event: 'by an event',
  backfill: 'by a backfill',
};
