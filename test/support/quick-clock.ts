import { setImmediate as nextTurn } from 'node:timers/promises';
import { SystemClock } from '../../app/clock.ts';

/** The present time, and no pause lasts: for what looks again and again, and would else be waited for. */
export class QuickClock extends SystemClock {
  override async sleep(_milliseconds: number, signal?: AbortSignal): Promise<void> {
    await nextTurn();
    signal?.throwIfAborted();
  }
}
