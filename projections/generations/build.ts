import { errorMessage } from '../error-message.ts';
import type { Follower } from '../projector/follower.ts';
import type { FillingStatus } from '../projector/projection-status.ts';
import type { ViewState } from '../projector/view-states.ts';
import type { GenerationWriter } from './generation-writer.ts';

/** Fills a generation from the log's beginning, in this thread or in others. */
export interface Filler {
  readonly writer: GenerationWriter;

  /**
   * Resolves with true when the generation has everything that was in the log, is indexed and closed; with false when
   * the signal was aborted. Waits for stores that do not answer. May be called again after a pause.
   * @throws PoisonedFillError
   */
  run(signal: AbortSignal): Promise<boolean>;

  status(): Omit<FillingStatus, 'state'>;
}

export interface BuildOptions {
  readonly filler: Filler;
  readonly follow: (writer: GenerationWriter) => Follower;
  readonly onChange: () => void;
}

/** A generation being built: filled, then followed, until its view takes it over or discards it. */
export class Build {
  readonly #options: BuildOptions;
  #filling: AbortController | null = null;
  #work: Promise<void> = Promise.resolve();
  #follower: Follower | null = null;
  #error: string | null = null;

  constructor(options: BuildOptions) {
    this.#options = options;
  }

  get version(): number {
    return this.#options.filler.writer.generation;
  }

  get follower(): Follower | null {
    return this.#follower;
  }

  /** Why the build failed; null if it did not. */
  get error(): string | null {
    return this.#error;
  }

  /** Starts filling, or continues after a pause. */
  begin(): void {
    if (this.#filling !== null || this.#follower !== null || this.#error !== null) return;
    const filling = (this.#filling = new AbortController());
    const { filler, follow, onChange } = this.#options;
    this.#work = filler.run(filling.signal).then(
      (isFilled) => {
        this.#filling = null;
        if (!isFilled) return;
        this.#follower = follow(filler.writer);
        onChange();
      },
      (error: unknown) => {
        this.#filling = null;
        this.#error = errorMessage(error);
        onChange();
      },
    );
  }

  /** Stops filling; resolves when nothing is being written. A filled generation is still followed. */
  async pause(): Promise<void> {
    this.#filling?.abort();
    await this.#work;
  }

  /** Ends the build; the generation stays. */
  async stop(): Promise<void> {
    await this.pause();
    await this.#follower?.stop();
    this.#follower = null;
  }

  status(state: ViewState): FillingStatus {
    const status = this.#options.filler.status();
    if (this.#error !== null) return { ...status, state: 'failed', detail: this.#error };
    const shown =
      state === 'filling' || state === 'paused' || state === 'catching_up' ? state : 'ready';
    return { ...status, state: shown };
  }
}
