import type { FillingStatus } from '../projector/projection-status.ts';
import type { Following } from '../projector/following.ts';
import type { GenerationFeeder } from './generation-feeder.ts';
import type { Making } from './making.ts';

export interface RebuildOptions {
  readonly filling: Making;
  /** Feeds the filled generation from then on. */
  readonly follow: (feeder: GenerationFeeder) => Following;
  /** Told when it is filled, or has failed. */
  readonly onChange: () => void;
}

/** A generation in the making: filled, then fed, until its view takes it over or throws it away. May rest. */
export class Rebuild {
  readonly #options: RebuildOptions;
  #rest: AbortController | null = null;
  #work: Promise<void> = Promise.resolve();
  #following: Following | null = null;
  #error: string | null = null;

  constructor(options: RebuildOptions) {
    this.#options = options;
  }

  get feeder(): GenerationFeeder {
    return this.#options.filling.feeder;
  }

  get version(): number {
    return this.feeder.generation;
  }

  /** What feeds it once it is filled; null before. */
  get following(): Following | null {
    return this.#following;
  }

  /** Why it goes no further; null while it does. */
  get error(): string | null {
    return this.#error;
  }

  get rests(): boolean {
    return this.#rest === null && this.#following === null && this.#error === null;
  }

  /** Begins, or goes on after a rest. */
  begin(): void {
    if (!this.rests) return;
    const rest = (this.#rest = new AbortController());
    const { filling, follow, onChange } = this.#options;
    this.#work = filling.run(rest.signal).then(
      (isFilled) => {
        this.#rest = null;
        if (!isFilled) return;
        this.#following = follow(filling.feeder);
        onChange();
      },
      (error: unknown) => {
        this.#rest = null;
        this.#error = error instanceof Error ? error.message : String(error);
        filling.failed(this.#error);
        onChange();
      },
    );
  }

  /** Rests where it is, unless it is filled; resolves when nothing is written any more. */
  async pause(): Promise<void> {
    this.#rest?.abort();
    await this.#work;
  }

  /** Ends it; what it has made stays. */
  async stop(): Promise<void> {
    await this.pause();
    await this.#following?.stop();
    this.#following = null;
  }

  /** It is level with the generation that is read, and compared with it. */
  ready(): void {
    this.#options.filling.ready();
  }

  status(): FillingStatus {
    return this.#options.filling.status();
  }
}
