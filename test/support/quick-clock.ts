import { setImmediate as nextTurn } from 'node:timers/promises';
import { SystemClock } from '../../app/clock.ts';

/** The present time with immediate pauses, for code that polls. */
export class QuickClock extends SystemClock {
  override async sleep(_milliseconds: number, signal?: AbortSignal): Promise<void> {
    await nextTurn();
    signal?.throwIfAborted();
  }
}
