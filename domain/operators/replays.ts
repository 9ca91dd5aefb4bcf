import { fromIso, toIso, type Instant } from '../clock.ts';
import { Refusal } from '../errors.ts';
import type { ReplayEvent } from '../events/catalogue.ts';
import type { EventStore, Position } from '../event-store.ts';
import { handle, type CommandContext, type Fold, type Handled } from '../handle.ts';
import { streams } from '../streams.ts';
import type { ReplayEnd } from '../vocabulary.ts';

/** How many replays there may be at a time, whatever their state. */
export const MOST_REPLAYS = 8;

/** Views as of a moment, under a name. */
export interface Replay {
  readonly name: string;
  /** Of the order; a name that was dropped and ordered again has another. */
  readonly version: number;
  /** The last position that is folded. */
  readonly until: Position;
  /** The moment that it stands for, ISO 8601. */
  readonly at: string;
  /** Names of the views. */
  readonly views: readonly string[];
  /** Events a second at most; null: as fast as it goes. */
  readonly rate: number | null;
  /** When it is thrown away by itself. */
  readonly keptUntil: Instant;
  /** Who has ordered it: the agent's id. */
  readonly by: string;
  /** ISO 8601. */
  readonly orderedAt: string;
  /** Documents of each view once it was ready; null before. */
  readonly documents: Readonly<Record<string, number>> | null;
  /** Why it goes no further; null while it does. */
  readonly error: string | null;
  /** Somebody has said that it is to be thrown away. */
  readonly dropping: boolean;
}

export interface Replays {
  /** The largest that was ever given. */
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
      const fresh = { documents: null, error: null, dropping: false };
      const keptUntil = fromIso(kept_until);
      known.set(name, {
        ...{ name, version, until, at, views, rate, keptUntil, by, orderedAt },
        ...fresh,
      });
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

/** What is wanted of a replay. */
export interface ReplayWish {
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
 * Orders views as of a moment under a name.
 * @throws Refusal `STATE_CONFLICT` where the name is taken, or there are {@link MOST_REPLAYS}
 */
export function requestReplay(
  store: EventStore,
  { name, keepFor, ...wish }: ReplayWish,
  context: CommandContext,
): Promise<Handled<Replays>> {
  return onReplays(store, context, ({ known, lastVersion }) => {
    if (known.has(name)) {
      throw new Refusal('STATE_CONFLICT', `there is a replay ${name}; drop it first`, { name });
    }
    if (known.size >= MOST_REPLAYS) {
      const message = `there are ${known.size} replays; drop one first`;
      throw new Refusal('STATE_CONFLICT', message, { limit: MOST_REPLAYS });
    }
    const kept_until = toIso(context.now + keepFor);
    const { until, at, rate } = wish;
    const data = { name, version: lastVersion + 1, until, at, views: [...wish.views], rate };
    return [{ type: 'ReplayRequested', data: { ...data, kept_until } }];
  });
}

/** Says that a replay is to be thrown away. @throws Refusal `NOT_FOUND` */
export function dropReplay(
  store: EventStore,
  name: string,
  context: CommandContext,
): Promise<Handled<Replays>> {
  return onReplays(store, context, ({ known }) => {
    const replay = known.get(name);
    if (replay === undefined) {
      const details = { resource: 'replay', id: name };
      throw new Refusal('NOT_FOUND', `there is no replay ${name}`, details);
    }
    const { version, dropping } = replay;
    return dropping ? [] : [{ type: 'ReplayDropRequested', data: { name, version } }];
  });
}

/** Says what became of a replay, where it still is as it was seen. */
export function reportReplay(
  store: EventStore,
  { name, version }: Replay,
  what:
    | { readonly documents: Readonly<Record<string, number>> }
    | { readonly error: string }
    | { readonly dropped: ReplayEnd },
  context: CommandContext,
): Promise<Handled<Replays>> {
  return onReplays(store, context, ({ known }) => {
    if (known.get(name)?.version !== version) return [];
    if ('dropped' in what) {
      return [{ type: 'ReplayDropped', data: { name, version, cause: what.dropped } }];
    }
    if ('error' in what) {
      return [{ type: 'ReplayFailed', data: { name, version, error: what.error } }];
    }
    const documents = { ...what.documents };
    return [{ type: 'ReplayReady', data: { name, version, documents } }];
  });
}

function onReplays(
  store: EventStore,
  context: CommandContext,
  decide: (state: Replays) => readonly ReplayEvent[],
): Promise<Handled<Replays>> {
  return handle<Replays, ReplayEvent>({
    store,
    stream: streams.replays(),
    fold: replaysFold,
    context,
    decide,
  });
}
