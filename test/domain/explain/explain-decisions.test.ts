import { expect } from 'chai';
import { toIso, type Instant } from '../../../domain/clock.ts';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import type { FiresEvent } from '../../../domain/events/catalogue.ts';
import {
  endOf,
  findDecisions,
  startOf,
  type Decisions,
} from '../../../domain/explain/decisions.ts';
import { MemoryLog } from '../memory-log.ts';
import { place, START } from '../given.ts';

const second = 1000;
const STREAM = 'fires-t';

/** A log with the fires of a task. It counts the events that are read. */
class FiresLog extends MemoryLog {
  reads = 0;
  eventsRead = 0;
  readonly #events: RecordedEvent[] = [];

  fired(nominal: Instant): this {
    return this.#add({ type: 'Fired', data: { nominal: toIso(nominal), run_id: 'r', ...rest } });
  }

  skipped(from: Instant, to: Instant): this {
    const span = { reason: 'missed' as const, from: toIso(from), to: toIso(to), count: 2 };
    return this.#add({ type: 'FiresSkipped', data: { ...span, ...rest } });
  }

  corrected(times: number): this {
    for (let n = 0; n < times; n += 1) {
      this.#add({ type: 'NextFireCorrected', data: { tz_version: '2025c', ...rest } });
    }
    return this;
  }

  #add(event: FiresEvent): this {
    const revision = this.#events.length;
    const position = String(revision).padStart(16, '0');
    const { metadata } = place(revision);
    const at = { id: String(revision), stream: STREAM, createdAt: metadata.occurredAt };
    this.#events.push({ ...event, ...at, revision, position, metadata });
    return this;
  }

  override async readStream(
    ...[, options]: Parameters<MemoryLog['readStream']>
  ): Promise<readonly RecordedEvent[]> {
    this.streams.set(STREAM, this.#events);
    const found = await super.readStream(STREAM, options);
    this.reads += 1;
    this.eventsRead += found.length;
    return found;
  }

  find(at: Instant): Promise<Decisions> {
    return findDecisions(this, STREAM, at, at + second - 1);
  }
}

const rest = { next_fire_at: null, task_revision: 0, fire_count: 1 };
const span = (decision: Decisions['before']): readonly Instant[] | null =>
  decision === null ? null : [startOf(decision) - START, endOf(decision) - START];

describe('the search for decisions', () => {
  it('finds nothing in an empty stream', async () => {
    expect(await new FiresLog().find(START)).to.deep.equal({
      before: null,
      within: [],
      after: null,
      last: null,
    });
  });

  it('finds every decision of a stream and its neighbours, also at times without a decision', async () => {
    const at = (n: number): Instant => START + n * second;
    const schedule = new FiresLog().corrected(9).fired(at(1)).corrected(6).skipped(at(3), at(6));
    schedule.fired(at(7)).skipped(at(8), at(8)).corrected(11).fired(at(12)).corrected(5);
    const decided = [
      [1, 1],
      [3, 6],
      [7, 7],
      [8, 8],
      [12, 12],
    ] as const;
    for (let n = -1; n < 15; n += 1) {
      const found = await schedule.find(at(n));
      const spans = (
        which: (from: number, to: number) => boolean,
      ): readonly (readonly number[])[] =>
        decided
          .filter(([from, to]) => which(from, to))
          .map(([from, to]) => [from * second, to * second]);
      const wanted = {
        before: spans((_, to) => to < n).at(-1) ?? null,
        within: spans((from, to) => from <= n && n <= to),
        after: spans((from) => from > n)[0] ?? null,
      };
      const actual = {
        before: span(found.before),
        within: found.within.map(span),
        after: span(found.after),
      };
      expect(actual, `at ${n}`).to.deep.equal(wanted);
    }
  });

  it('reads a few dozen events of a stream of two hundred thousand', async () => {
    const schedule = new FiresLog();
    const fires = 200_000;
    for (let n = 0; n < fires; n += 1) schedule.fired(START + n * second);
    for (const n of [0, 1, 77_777, fires - 2, fires - 1]) {
      schedule.reads = 0;
      schedule.eventsRead = 0;
      const { before, within, after } = await schedule.find(START + n * second);
      expect(within.map(span)).to.deep.equal([[n * second, n * second]]);
      expect(span(before)).to.deep.equal(n === 0 ? null : [(n - 1) * second, (n - 1) * second]);
      expect(span(after)).to.deep.equal(
        n === fires - 1 ? null : [(n + 1) * second, (n + 1) * second],
      );
      expect(schedule.reads).to.be.below(25);
      expect(schedule.eventsRead).to.be.below(100);
    }
    schedule.reads = 0;
    await schedule.find(START + fires * second);
    expect(schedule.reads).to.equal(1);
  });
});
