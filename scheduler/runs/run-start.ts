import { toIso, type Instant } from '../../domain/clock.ts';
import type { NewEvent } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { occurAt, toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { startRun, type KnownRun } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Membership } from '../processes/membership.ts';
import type { QueuedRun } from './queued-run.ts';

/** The run's stream. */
interface StartStream {
  append(start: { readonly events: readonly RunEvent[]; readonly now: Instant }): Promise<unknown>;
}

export interface RunStartOptions {
  /** This process, the worker of the run. */
  readonly membership: Pick<Membership, 'id' | 'lease'>;
  readonly telemetry: Pick<Telemetry, 'observe'>;
}

/**
 * The start of an attempt. Only this class builds `RunStarted`. It is appended in one of three ways:
 *
 * - {@link write}: alone, before the work;
 * - {@link withEnd}: with the end, after an instant run (docs/decisions/0024);
 * - {@link newEvent}: with the request, when many runs are due at once (`scheduler/burst/`).
 */
export class RunStart {
  readonly event: ReturnType<typeof startRun>;
  readonly #options: RunStartOptions;
  readonly #run: QueuedRun;
  /** The attempt continues after a wait or its worker's death. */
  readonly #continues: boolean;
  #at: Instant;
  #newEvent: NewEvent | undefined;
  #writing: Promise<void> | null = null;
  #isWritten = false;

  /** @param known the run's stream; null if it has only the request */
  constructor(options: RunStartOptions, run: QueuedRun, at: Instant, known: KnownRun | null) {
    const { id, lease } = options.membership;
    this.event = startRun(known ?? run, id, at + lease);
    this.#continues = this.event.data.attempt === run.attempt;
    this.#options = options;
    this.#run = run;
    this.#at = at;
  }

  get at(): Instant {
    return this.#at;
  }

  get startedAt(): string {
    return toIso(this.#at);
  }

  get attempt(): number {
    return this.event.data.attempt;
  }

  get isWritten(): boolean {
    return this.#isWritten;
  }

  /** Appends the start alone, unless it is written. Rejects as the append does. */
  write(stream: StartStream): Promise<void> {
    this.#writing ??= this.#append(stream);
    return this.#writing;
  }

  async #append(stream: StartStream): Promise<void> {
    if (this.#isWritten) return;
    await stream.append({ events: [this.event], now: this.#at });
    this.written();
  }

  /** The events of an end, preceded by this start unless the start is already written. */
  withEnd(ends: readonly RunEvent[]): readonly RunEvent[] {
    return this.#isWritten || ends.length === 0 ? ends : [this.event, ...ends];
  }

  /** The start for an append together with the run's request. */
  get newEvent(): NewEvent {
    if (this.#newEvent === undefined) {
      const { id: source } = this.#options.membership;
      const context = { commandId: newId(this.#at), actor: 'service', source, now: this.#at };
      const about = { ...context, correlationId: this.#run.id, namespace: this.#run.namespace };
      [this.#newEvent] = toNewEvents(streams.run(this.#run.id), [this.event], about);
    }
    return this.#newEvent as NewEvent;
  }

  /** Moves the time of a start that was prepared ahead. Its lease becomes shorter by the same amount. */
  moveTo(now: Instant): void {
    this.#at = now;
    occurAt([this.newEvent], now);
  }

  /** Notes that the start is in the log. */
  written(): void {
    if (this.#isWritten) return;
    this.#isWritten = true;
    if (this.#continues) return;
    const lateness = Math.max(0, this.#at - this.#run.runAt) / 1000;
    this.#options.telemetry.observe('run_start_lateness_seconds', lateness);
  }
}
