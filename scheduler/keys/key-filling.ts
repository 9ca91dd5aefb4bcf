import type { Clock, Instant } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { changeKey, type KeyChange, type KeyContext } from '../../domain/keys/key-stream.ts';
import type { KeyName, KeyState } from '../../domain/keys/key.ts';
import type { KeyErrands } from './key-errands.ts';
import type { KeyLine } from './key-line.ts';
import { streamOf } from './key-names.ts';
import type { KeyWatch } from './key-watch.ts';
import type { QueuedRun } from '../runs/run-queue.ts';

/** A key that another worker is the first choice for is left to it for this long. Milliseconds. */
const HOLD_BACK = 75;

/**
 * Writes runs into the lines of keys: those who have just come, and where a line has become short those who found it
 * full. One append for as many as have come while the last one was under way; and of several workers, who all know
 * the same runs, the first choice for a key does it. The others see what it wrote, and have nothing left to do.
 */
export class KeyFilling {
  private readonly store: EventStore;
  private readonly line: KeyLine;
  private readonly watch: KeyWatch;
  private readonly clock: Clock;
  private readonly errands: KeyErrands;
  private readonly contextFor: (correlationId: string, now: Instant) => KeyContext;
  /** Keys whose line is being filled, or about to be, with those who have come meanwhile. */
  private readonly filling = new Map<string, Set<QueuedRun>>();

  constructor(options: {
    readonly store: EventStore;
    readonly line: KeyLine;
    readonly watch: KeyWatch;
    readonly clock: Clock;
    readonly errands: KeyErrands;
    readonly contextFor: (correlationId: string, now: Instant) => KeyContext;
  }) {
    this.store = options.store;
    this.line = options.line;
    this.watch = options.watch;
    this.clock = options.clock;
    this.errands = options.errands;
    this.contextFor = options.contextFor;
  }

  /** Puts runs into line soon. @param coming one that has just come; null for those who found no place */
  soon(name: KeyName, coming: QueuedRun | null): void {
    const stream = streamOf(name);
    const gathered = this.filling.get(stream);
    if (coming !== null) gathered?.add(coming);
    if (gathered !== undefined) return;
    this.filling.set(stream, new Set(coming === null ? [] : [coming]));
    if (this.watch.isMine(stream)) {
      // In the next turn: what this one brings comes along.
      setImmediate(() => this.begin(stream, name));
    } else {
      this.clock.after(HOLD_BACK, () => this.begin(stream, name), {
        background: true,
      });
    }
  }

  private begin(stream: string, name: KeyName): void {
    this.errands.begin(this.fillAll(stream, name));
  }

  private async fillAll(stream: string, name: KeyName): Promise<void> {
    do {
      const coming = [...(this.filling.get(stream) ?? [])];
      this.filling.set(stream, new Set());
      // Whatever is decided on what is known, and comes to nothing, is so: only a place in line is at stake.
      const known = this.watch.peek(name)?.state;
      const now = this.clock.now();
      if (known !== undefined && this.line.fill(known, now, coming).length === 0) continue;
      await this.errands.persist(name.key, name, async () => {
        const at = this.clock.now();
        const fill = (state: KeyState): KeyChange<null> => {
          return { events: this.line.fill(state, at, coming), answer: null };
        };
        const context = this.contextFor(name.key, at);
        const changed = await changeKey(this.store, name, context, fill, () =>
          this.watch.peek(name),
        );
        this.watch.note(name, changed.state, changed.revision);
      });
    } while ((this.filling.get(stream)?.size ?? 0) > 0);
    this.filling.delete(stream);
  }
}
