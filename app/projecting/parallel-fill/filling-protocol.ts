import type { StreamShare } from '../../../domain/stream-share.ts';
import type { Labels } from '../../../observability/telemetry.ts';
import type { FillingCounts } from '../../../projections/generations/filling-progress.ts';
import type { FillOrder } from '../../../projections/parallel-fill/parallel-fill.ts';
import type { PoisonedKey } from '../../../projections/projector/fold-batch.ts';
import type { Configuration } from '../../configuration/configuration.ts';

/** The folders of the embedded log and of the embedded views, and the log level. */
export interface FillingPlace {
  readonly log: string;
  readonly views: string;
  readonly logLevel: Configuration['logLevel'];
}

export interface FillingThreadData {
  readonly place: FillingPlace;
  readonly order: FillOrder;
  readonly share: StreamShare;
}

/** From the parent to a thread. */
export type ToFiller =
  /** To all but the first share: fill, because the first share has not merged them yet. */
  | { readonly kind: 'begin' }
  /** To the first share: all others are filled. */
  | { readonly kind: 'others-filled' }
  /** The keys are parked, or could not be parked for this reason. */
  | { readonly kind: 'parked'; readonly id: number; readonly error: string | null }
  | { readonly kind: 'stop' };

/** From a thread to its parent. */
export type FromFiller =
  /** From the first share: whether it is still to merge the others. */
  | { readonly kind: 'opened'; readonly isPart: boolean }
  | {
      readonly kind: 'progress';
      readonly counts: Omit<FillingCounts, 'version'>;
      readonly detail: string | null;
    }
  | {
      readonly kind: 'park';
      readonly id: number;
      readonly view: string;
      readonly poisoned: readonly PoisonedKey[];
    }
  | { readonly kind: 'count'; readonly name: string; readonly labels: Labels; readonly by: number }
  /** The end of the thread: its share is filled and closed. Without any of these, it was stopped. */
  | { readonly kind: 'filled' }
  | { readonly kind: 'poisoned'; readonly poisoned: PoisonedKey }
  | { readonly kind: 'failed'; readonly error: string };
