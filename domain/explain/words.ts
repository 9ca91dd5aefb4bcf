import { toIso, type Instant } from '../clock.ts';
import type { RecordedEvent } from '../event-store.ts';
import { start } from '../pipeline/size.ts';
import type { Fire } from '../schedule/schedule.ts';
import { zoneOf, type Zone } from '../schedule/zone.ts';
import type { RunTrigger } from '../vocabulary.ts';

const units: readonly (readonly [name: string, seconds: number])[] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
];

/** A length of time for a person, in its two largest units: `3 d 2 h`, `1 min 5 s`, `0.4 s`. @param ms its milliseconds */
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

/** What a clock change did to a fire, or to a time before it, as a sentence; none where it did nothing. */
export function noteOf(fire: Pick<Fire, 'note'> | null): readonly string[] {
  const note = fire?.note ?? null;
  return note === null ? [] : [`A clock change is near: ${note}.`];
}

/** Texts of the log's making: not more of them than a person reads. */
export function excerpt(text: string, most = 200): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length > most ? `${start(line, most)}…` : line;
}

/** Instants and agents, as one task's explanation writes them. */
export class Words {
  readonly #zone: Zone | null;
  readonly #names: ReadonlyMap<string, string>;

  /**
   * @param timezone the task's at that time: instants are written in it
   * @param names of agents, by their ids
   */
  constructor(timezone: string, names: ReadonlyMap<string, string>) {
    const zone = zoneOf(timezone);
    this.#zone = zone === null || /^(etc\/)?utc$/i.test(zone.name) ? null : zone;
    this.#names = names;
  }

  /** An instant: `2026-03-02T09:00:00Z`, elsewhere `2026-03-02T10:00:00+01:00`. */
  when(instant: Instant): string {
    if (this.#zone !== null) return this.#zone.localText(instant);
    return toIso(instant).replace('.000Z', 'Z');
  }

  /** An instant of the log. */
  at(text: string): string {
    return this.when(Date.parse(text));
  }

  /** Who did something, and why in their words: `by admin (01a1…), who said "maintenance"`. */
  by(event: RecordedEvent): string {
    const { actor, reason } = event.metadata;
    if (event.type === 'TaskPaused' && event.data.by_failures) {
      return `by the service, after too many failures${reason === undefined ? '' : ` (${reason})`}`;
    }
    const name = this.#names.get(actor);
    if (actor === 'service')
      return reason === undefined ? 'by the service' : `by the service: ${reason}`;
    const who = name === undefined ? `agent ${actor}` : `${name} (${actor})`;
    return reason === undefined ? `by ${who}` : `by ${who}, who said "${excerpt(reason)}"`;
  }
}

/** What a run comes from. */
export const triggerWords: Readonly<Record<RunTrigger, string>> = {
  schedule: 'by the schedule',
  manual: 'by hand',
  event: 'by an event',
  backfill: 'by a backfill',
};
