import type { Position } from '../../domain/event-store.ts';
import type { GenerationWriter } from './generation-writer.ts';

/** Waits until generations of one view have passed positions of the log. */
export class CatchUp {
  #waiting: {
    readonly writer: GenerationWriter;
    readonly at: Position;
    readonly resolve: () => void;
  }[] = [];

  /** Call it when a generation has passed a position. */
  passed(): void {
    if (this.#waiting.length === 0) return;
    const done = this.#waiting.filter(({ writer, at }) => writer.passed >= at);
    this.#waiting = this.#waiting.filter((each) => !done.includes(each));
    for (const { resolve } of done) resolve();
  }

  end(): void {
    for (const { resolve } of this.#waiting) resolve();
    this.#waiting = [];
  }

  /** Resolves when a generation has passed a position, or at the end. */
  reaches(writer: GenerationWriter, at: Position, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ writer, at, resolve });
      if (signal.aborted) resolve();
      this.passed();
    });
  }

  /** Resolves when each generation has passed the position that the other has now. */
  async level(one: GenerationWriter, other: GenerationWriter, signal: AbortSignal): Promise<void> {
    const at = one.passed > other.passed ? one.passed : other.passed;
    await Promise.all([this.reaches(one, at, signal), this.reaches(other, at, signal)]);
  }
}
