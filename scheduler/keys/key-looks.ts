import type { Clock, Instant } from '../../domain/clock.ts';
import type { KeyName } from '../../domain/keys/key.ts';
import { streamOf } from './key-names.ts';

/** Milliseconds between looks at the keys that runs here wait for, and between two at the same full one. */
export const LOOK_EVERY = 3000;

/** When full keys were looked at: however many want one, it is looked at again only after a while. */
export class KeyLooks {
  private readonly clock: Clock;
  private readonly lookedAt = new Map<string, Instant>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Whether a key may be looked at now. */
  isDue(name: KeyName): boolean {
    const at = this.lookedAt.get(streamOf(name)) ?? Number.NEGATIVE_INFINITY;
    // Either way: the clock may have been put back.
    return Math.abs(this.clock.now() - at) >= LOOK_EVERY;
  }

  /** The same; where it may, the look begins now. */
  begins(name: KeyName): boolean {
    if (!this.isDue(name)) return false;
    this.lookedAt.set(streamOf(name), this.clock.now());
    return true;
  }

  /** Drops what tells nothing any more. */
  forgetOld(): void {
    for (const [stream, at] of this.lookedAt) {
      if (Math.abs(this.clock.now() - at) > LOOK_EVERY) this.lookedAt.delete(stream);
    }
  }
}
