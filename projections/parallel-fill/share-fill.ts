import type { EventStore, Position } from '../../domain/event-store.ts';
import { errorMessage } from '../error-message.ts';
import { logUpTo } from '../generations/bounded-log.ts';
import { FinalFillError, type GenerationWriter } from '../generations/generation-writer.ts';

/** The shares of a generation could not be merged: a file or its thread may be gone. */
class SharesError extends FinalFillError {
  constructor(cause: unknown) {
    super(errorMessage(cause), { cause });
    this.name = 'SharesError';
  }
}

/** The part of one thread in a parallel fill, before share 0 fills the events since. */
export class ShareFill {
  readonly end: Position;
  readonly #onOpened: () => void;
  readonly #othersFilled: Promise<void>;

  /**
   * @param parts.onOpened called when the generation is open
   * @param parts.othersFilled resolves once all other shares are filled; awaited by share 0
   */
  constructor(parts: {
    readonly end: Position;
    readonly onOpened: () => void;
    readonly othersFilled: Promise<void>;
  }) {
    this.end = parts.end;
    this.#onOpened = parts.onOpened;
    this.#othersFilled = parts.othersFilled;
  }

  /**
   * Fills the share; share 0 then merges the others.
   *
   * @param feed feeds the writer from a log, up to the end of that log; false if the signal was aborted
   * @returns `whole` if the writer continues as the writer of the whole generation
   * @throws SharesError
   */
  async run(
    writer: GenerationWriter,
    store: EventStore,
    feed: (store: EventStore) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<'whole' | 'filled' | 'aborted'> {
    this.#onOpened();
    const { share } = writer;
    if (share === null) return 'whole';
    if (!(await feed(logUpTo(store, this.end)))) return 'aborted';
    if (share.index > 0) {
      await writer.close();
      return 'filled';
    }
    await this.#othersFilled;
    if (signal.aborted) return 'aborted';
    try {
      await writer.takeIn();
    } catch (error) {
      throw new SharesError(error);
    }
    return 'whole';
  }
}
