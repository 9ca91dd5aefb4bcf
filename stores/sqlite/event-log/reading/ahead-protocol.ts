import type { StreamShare } from '../../../../domain/stream-share.ts';
import type { PackedPage } from './packed-page.ts';

/** What goes between a subscription that is far behind and the thread that reads ahead of it. */

/** Which part of which log; where it begins is told later. */
export interface AheadOrder {
  readonly file: string;
  /** Number of the position at which it may end; it may also go somewhat further. */
  readonly until: number;
  /** Default: all streams. */
  readonly prefixes: readonly string[] | undefined;
  /** Default: all shares of the streams. */
  readonly share?: StreamShare | undefined;
}

export type ToAhead =
  /** Read from a position on, if that is told at all; so many further pages. */
  | { readonly kind: 'more'; readonly after?: number; readonly pages: number }
  | { readonly kind: 'end' };

/** `ready`: it may be told where to begin. It ends after the page that reaches its end. */
export type FromAhead =
  { readonly kind: 'ready' } | { readonly kind: 'page'; readonly page: PackedPage };
