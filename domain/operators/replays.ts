import { fromIso, toIso, type Instant } from '../clock.ts';
import { notFound, RefusalError } from '../errors.ts';
import type { ReplayEvent } from '../events/catalogue.ts';
import type { EventStore, Position } from '../event-store.ts';
import { handle, type CommandContext, type Fold, type Handled } from '../handle.ts';
import { streams } from '../streams.ts';
import type { ReplayEnd } from '../vocabulary.ts';

/** How many replays may exist at a time, in any state. */
export const MAX_REPLAYS = 8;

/** Views as of an instant, under a name. */
export interface Replay {
  readonly name: string;
  /** The version of the order. A name that is dropped and ordered again gets another version. */
  readonly version: number;
  /** The last position to fold. */
  readonly until: Position;
  /** The instant that it shows, ISO 8601. */
  readonly at: string;
  /** Names of the views. */
  readonly views: readonly string[];
  /** Maximum events a second; null: unlimited. */
  readonly rate: number | null;
  /** When it expires. */
  readonly keptUntil: Instant;
  /** The agent that ordered it. */
  readonly by: string;
  /** ISO 8601. */
  readonly orderedAt: string;
  /** The number of documents of each view when the replay became ready; null before. */
  readonly documents: Readonly<Record<string, number>> | null;
  /** Why it failed; null while it has not. */
  readonly error: string | null;
  /** Whether it is to be deleted. */
  readonly dropping: boolean;
}

export interface Replays {
  /** The highest version ever given. */
  readonly lastVersion: number;
  /** By name. */
  readonly known: ReadonlyMap<string, Replay>;
}

export const replaysFold: Fold<Replays, ReplayEvent> = {
  initial: { lastVersion: 0, known: new Map() },
  evolve(state, event, { metadata }) {
    const { name, version } = event.data;
    const known = new Map(state.known);
    const lastVersion = Math.max(state.lastVersion, version);
    if (event.type === 'ReplayRequested') {
      const { until, at, views, rate, kept_until } = event.data;
      const { actor: by, occurredAt: orderedAt } = metadata;
      const order = { name, version, until, at, views, rate, keptUntil: fromIso(kept_until) };
      const fresh = { documents: null, error: null, dropping: false };
      known.set(name, { ...order, by, orderedAt, ...fresh });
      return { lastVersion, known };
    }
    const replay = known.get(name);
    if (replay?.version !== version) return state;
    switch (event.type) {
      case 'ReplayReady':
        known.set(name, { ...replay, documents: event.data.documents, error: null });
        break;
      case 'ReplayFailed':
        known.set(name, { ...replay, error: event.data.error });
        break;
      case 'ReplayDropRequested':
        known.set(name, { ...replay, dropping: true });
        break;
      case 'ReplayDropped':
        known.delete(name);
        break;
    }
    return { lastVersion, known };
  },
};

/** The request of a caller. */
export interface ReplayRequest {
  readonly name: string;
  readonly until: Position;
  /** ISO 8601. */
  readonly at: string;
  readonly views: readonly string[];
  readonly rate: number | null;
  /** Milliseconds. */
  readonly keepFor: number;
}

/**
 * Orders views as of an instant, under a name.
 * @throws RefusalError `STATE_CONFLICT` if the name is taken, or {@link MAX_REPLAYS} exist
 */
export function requestReplay(
  store: EventStore,
  { name, keepFor, ...wish }: ReplayRequest,
  context: CommandContext,
): Promise<Handled<Replays>> {
  return onReplays(store, context, ({ known, lastVersion }) => {
    if (known.has(name)) {
      const message = `the replay ${name} already exists; drop it first`;
      throw new RefusalError('STATE_CONFLICT', message, { name });
    }
    if (known.size >= MAX_REPLAYS) {
      const message = `${known.size} replays already exist; drop one first`;
      throw new RefusalError('STATE_CONFLICT', message, { limit: MAX_REPLAYS });
    }
    const kept_until = toIso(context.now + keepFor);
    const { until, at, rate } = wish;
    const data = { name, version: lastVersion + 1, until, at, views: [...wish.views], rate };
    return [{ type: 'ReplayRequested', data: { ...data, kept_until } }];
  });
}

/** Orders that a replay be deleted. @throws RefusalError `NOT_FOUND` */
export function dropReplay(
  store: EventStore,
  name: string,
  context: CommandContext,
): Promise<Handled<Replays>> {
  return onReplays(store, context, ({ known }) => {
    const replay = known.get(name);
    if (replay === undefined) throw notFound('replay', name);
    const { version, dropping } = replay;
    return dropping ? [] : [{ type: 'ReplayDropRequested', data: { name, version } }];
  });
}

/** Records the outcome of a replay, unless it was dropped or ordered again in the meantime. */
export function reportReplay(
  store: EventStore,
  { name, version }: Replay,
  result:
    | { readonly documents: Readonly<Record<string, number>> }
    | { readonly error: string }
    | { readonly dropped: ReplayEnd },
  context: CommandContext,
): Promise<Handled<Replays>> {
  return onReplays(store, context, ({ known }) => {
    if (known.get(name)?.version !== version) return [];
    if ('dropped' in result) {
      return [{ type: 'ReplayDropped', data: { name, version, cause: result.dropped } }];
    }
    if ('error' in result) {
      return [{ type: 'ReplayFailed', data: { name, version, error: result.error } }];
    }
    const documents = { ...result.documents };
    return [{ type: 'ReplayReady', data: { name, version, documents } }];
  });
}

function onReplays(
  store: EventStore,
  context: CommandContext,
  decide: (state: Replays) => readonly ReplayEvent[],
): Promise<Handled<Replays>> {
  return handle({ store, stream: streams.replays(), fold: replaysFold, context, decide });
}
