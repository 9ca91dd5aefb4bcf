import type { StreamShare } from '../../domain/stream-share.ts';
import type { Labels } from '../../observability/telemetry.ts';
import type { FillOrder } from '../../projections/generations/filling-beside.ts';
import type { FillingCounts } from '../../projections/generations/filling-progress.ts';
import type { PoisonedKey } from '../../projections/projector/fold-batch.ts';
import type { Configuration } from '../configuration/configuration.ts';

/** Where the embedded log and the embedded views lie, and what is logged. */
export interface FillingPlace {
  /** The folder of the log. */
  readonly log: string;
  /** The folder of the views. */
  readonly views: string;
  readonly logLevel: Configuration['logLevel'];
}

/** What a thread that fills a share of a generation is given. */
export interface FillingThreadData {
  readonly place: FillingPlace;
  readonly order: FillOrder;
  readonly share: StreamShare;
}

/** What it is told. */
export type ToFiller =
  /** Of another share than the first: that has yet to take this one in. */
  | { readonly kind: 'begin' }
  /** Of the first share: all others are filled. */
  | { readonly kind: 'others-filled' }
  /** What it wanted to hold back is held back, or why not. */
  | { readonly kind: 'parked'; readonly turn: number; readonly error: string | null }
  | { readonly kind: 'stop' };

/** What it says. */
export type FromFiller =
  /** Of the first share: whether the others are not in it yet. */
  | { readonly kind: 'opened'; readonly isPart: boolean }
  | {
      readonly kind: 'progress';
      readonly counts: Omit<FillingCounts, 'version'>;
      readonly detail: string | null;
    }
  | {
      readonly kind: 'park';
      readonly turn: number;
      readonly view: string;
      readonly poisoned: readonly PoisonedKey[];
    }
  | { readonly kind: 'count'; readonly name: string; readonly labels: Labels; readonly by: number }
  /** It ends: its share is filled, and the file closed. Where it ends without any of these, it was told to. */
  | { readonly kind: 'filled' }
  | { readonly kind: 'poisoned'; readonly poisoned: PoisonedKey }
  | { readonly kind: 'failed'; readonly error: string };
