import type { Position } from '../../domain/event-store.ts';
import type { Labels } from '../../observability/telemetry.ts';
import type { ProjectionStatus } from '../../projections/projector/projection-status.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { StoreSettings } from '../stores.ts';

/** What the projector of a process is given: plain values, as it may run in a thread. */
export interface ProjectorThreadData {
  readonly settings: StoreSettings & Pick<Configuration, 'logLevel' | 'roles' | 'traces'>;
  /** Of the service. */
  readonly version: string;
  /** Owner of the projector's lease. */
  readonly owner: string;
  /** Milliseconds. */
  readonly lease: number;
}

/** What it is told. */
export type ProjectorThreadMessage = { readonly kind: 'stop' };

/** What it says. */
export type ProjectorWord =
  /** Views by their names, and how far each is. */
  | { readonly kind: 'checkpoints'; readonly views: readonly (readonly [string, Position])[] }
  | {
      readonly kind: 'status';
      readonly leads: boolean;
      readonly views: readonly ProjectionStatus[];
    }
  | { readonly kind: 'count'; readonly name: string; readonly labels: Labels; readonly by: number }
  | {
      readonly kind: 'observe';
      readonly name: string;
      readonly labels: Labels;
      readonly value: number;
    };
