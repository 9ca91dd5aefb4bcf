import { setMaxListeners } from 'node:events';
import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { keepGoing, type Ongoing } from './keep-going.ts';

/** All the ongoing work of a process: begun together, told to end together. */
export class Going {
  private readonly controller = new AbortController();
  private readonly works: Promise<void>[] = [];
  private readonly states: Ongoing[] = [];
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;

  constructor(clock: Clock, telemetry: Telemetry) {
    this.clock = clock;
    this.telemetry = telemetry;
    // Each piece of work listens, and some of them more than once: that is no leak.
    setMaxListeners(0, this.controller.signal);
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Work that must always be done: begun again when it fails. `work` calls `started` once it does its part. */
  keep(name: string, work: (started: () => void) => Promise<void>): void {
    const ongoing: Ongoing = { name, state: 'starting', problem: null };
    this.states.push(ongoing);
    const { clock, telemetry, signal } = this;
    this.works.push(keepGoing({ ongoing, work, signal, clock, telemetry }));
  }

  /** What does not do its part (yet, or any more), and why. */
  notGoing(): readonly Ongoing[] {
    return this.states.filter(({ state }) => state !== 'going');
  }

  /** Tells all to end, and waits until they have. */
  async end(): Promise<void> {
    this.controller.abort();
    await Promise.all(this.works);
  }
}
