import type { Position } from '../../domain/event-store.ts';
import type { GenerationFeeder } from './generation-feeder.ts';

/** Waiting until generations have passed places of the log. */
export class Reaching {
  #awaited: {
    readonly feeder: GenerationFeeder;
    readonly at: Position;
    readonly go: () => void;
  }[] = [];

  /** A generation has passed something. */
  passed(): void {
    if (this.#awaited.length === 0) return;
    const there = this.#awaited.filter(({ feeder, at }) => feeder.passed >= at);
    this.#awaited = this.#awaited.filter((each) => !there.includes(each));
    for (const { go } of there) go();
  }

  /** Nobody waits any more. */
  end(): void {
    for (const { go } of this.#awaited) go();
    this.#awaited = [];
  }

  /** Resolves when a generation has passed a position, or at the end. */
  reaches(feeder: GenerationFeeder, at: Position, signal: AbortSignal): Promise<void> {
    return new Promise((go) => {
      this.#awaited.push({ feeder, at, go });
      if (signal.aborted) go();
      this.passed();
    });
  }

  /** Resolves when both have passed what either has passed now. */
  async level(one: GenerationFeeder, other: GenerationFeeder, signal: AbortSignal): Promise<void> {
    const at = one.passed > other.passed ? one.passed : other.passed;
    await Promise.all([this.reaches(one, at, signal), this.reaches(other, at, signal)]);
  }
}
