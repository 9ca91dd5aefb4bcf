import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';

/** How long a process that says nothing keeps its turn, and how often it says that it is there. Milliseconds. */
const LEASE = 10_000;
const RENEW = 3_000;

/** How long something may go on that was told to end. Milliseconds: less than what is left of a turn then. */
const END_LIMIT = 2_000;

/** Something that goes on for as long as this process has its turn. */
export interface DutyItem {
  /** As the status names it; of those of one name, one runs at a time. */
  readonly what: string;
  /** Ends when the signal is aborted, or when it has nothing more to do. Never rejects. */
  run(signal: AbortSignal, fence: number): Promise<void>;
}

interface Running {
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** What an extension does by itself, in one process at a time: who has the extension's lease does it. */
export class Duty {
  readonly #name: string;
  readonly #owner: string;
  readonly #coordination: Coordination;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #items = new Map<DutyItem, Running | null>();
  /** By name, the end of all that was begun under it: it is not begun again before. */
  readonly #last = new Map<string, Promise<void>>();
  readonly #goesOn: (item: DutyItem, ended: Promise<void>) => void;
  readonly #end = new AbortController();
  #fence: number | null = null;
  #renewed = 0;
  #holding: Promise<void> | null = null;

  constructor(options: {
    readonly extensionId: string;
    readonly owner: string;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    /** Told of what goes on though it was told to end two seconds ago: it is not waited for any longer. */
    readonly goesOn: (item: DutyItem, ended: Promise<void>) => void;
  }) {
    this.#name = `extension ${options.extensionId}`;
    this.#owner = options.owner;
    this.#coordination = options.coordination;
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
    this.#goesOn = options.goesOn;
  }

  /** What its lease is called. */
  get name(): string {
    return this.#name;
  }

  /** Whether this process has its turn. */
  get holds(): boolean {
    return this.#fence !== null;
  }

  /** Whether it has asked for nothing: there was nothing to do. */
  get isIdle(): boolean {
    return this.#holding === null;
  }

  /** Starts an item: now where this process has its turn, else once it has. */
  add(item: DutyItem): void {
    this.#items.set(item, this.#fence === null ? null : this.#start(item, this.#fence));
    this.#holding ??= this.#hold();
  }

  /** Ends an item, and resolves once it has ended, or was waited for long enough. */
  async remove(item: DutyItem): Promise<void> {
    const running = this.#items.get(item);
    this.#items.delete(item);
    if (running !== null && running !== undefined) await this.#endOf(item, running);
  }

  /** Ends all, and gives the turn to whoever waits. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#holding;
    if (this.#fence === null) return;
    await this.#yieldTurn();
    await this.#coordination.release(this.#name, this.#owner);
  }

  async #hold(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      await this.#renew();
      await this.#clock.sleep(RENEW, signal).catch(() => {});
    }
  }

  async #renew(): Promise<void> {
    try {
      const lease = await this.#coordination.acquire(this.#name, this.#owner, LEASE);
      if (lease?.fence === this.#fence) {
        this.#renewed = this.#clock.steady();
        return;
      }
      if (this.#fence !== null) await this.#yieldTurn();
      if (lease === null || this.#end.signal.aborted) return;
      this.#renewed = this.#clock.steady();
      this.#fence = lease.fence;
      for (const item of this.#items.keys()) this.#items.set(item, this.#start(item, lease.fence));
    } catch (error) {
      this.#telemetry.log.warn('an extension could not ask for its turn', {
        turn: this.#name,
        error,
      });
      const silent = this.#clock.steady() - this.#renewed;
      if (this.#fence !== null && silent > LEASE - RENEW) await this.#yieldTurn();
    }
  }

  #start(item: DutyItem, fence: number): Running {
    const stop = new AbortController();
    const before = this.#last.get(item.what);
    const ended = this.#run(item, before, stop.signal, fence);
    const last = Promise.all([before, ended]).then(() => {
      if (this.#last.get(item.what) === last) this.#last.delete(item.what);
    });
    this.#last.set(item.what, last);
    return { stop, ended };
  }

  async #run(
    item: DutyItem,
    before: Promise<void> | undefined,
    signal: AbortSignal,
    fence: number,
  ): Promise<void> {
    // Where it went on when the turn was lost, or when it was stopped, it would be done twice at a time.
    if (before !== undefined) await Promise.race([before, abortOf(signal)]);
    if (!signal.aborted) await item.run(signal, fence);
  }

  async #yieldTurn(): Promise<void> {
    this.#fence = null;
    const all = [...this.#items];
    for (const [item] of all) this.#items.set(item, null);
    await Promise.all(
      all.map(async ([item, running]) => {
        if (running !== null) await this.#endOf(item, running);
      }),
    );
  }

  async #endOf(item: DutyItem, { stop, ended }: Running): Promise<void> {
    stop.abort();
    let isOver = false;
    const waited = new AbortController();
    const end = ended.finally(() => {
      isOver = true;
      waited.abort();
    });
    // By the signal it is woken where it has ended.
    await this.#clock.sleep(END_LIMIT, waited.signal).catch(() => {});
    if (isOver) await end;
    else this.#goesOn(item, end);
  }
}

const abortOf = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
