import { toIso, type Clock } from '../../../domain/clock.ts';
import { BEGINNING, type EventStore, type Position } from '../../../domain/event-store.ts';
import { dropReplay, requestReplay, type Replay } from '../../../domain/operators/replays.ts';
import { streams } from '../../../domain/streams.ts';
import { positionAt, type PlaceInLog } from '../../../projections/reading/position-at.ts';
import { replayable } from '../../../projections/replays/replay-views.ts';
import {
  KEEP_HOURS,
  ReplayBody,
  ReplayDropOrdered,
  ReplayList,
  ReplayOrdered,
  type ReplayItem,
} from '../../schemas/answer-schemas-replays.ts';
import { ReadQuery } from '../../schemas/schemas.ts';
import { momentOf } from './audit-access.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { progressOf, replaysOf, stateOf } from './replay-reading.ts';

const HOUR = 3_600_000;

/** How long a replay may take to be thrown away, while the caller waits. Milliseconds. */
const PATIENCE = 5_000;

const list = endpoint({
  method: 'get',
  paths: ['/replays'],
  operationId: 'listReplays',
  summary: 'Lists the views that were made as of a moment, and those that are being made',
  scopes: ['ops'],
  query: ReadQuery,
  answers: { 200: ReplayList },
  async handle({ dependencies }) {
    const known = [...(await replaysOf(dependencies)).values()];
    return { body: { replays: await Promise.all(known.map((each) => show(dependencies, each))) } };
  },
});

const request = endpoint<ReplayBody>({
  method: 'post',
  paths: ['/replays'],
  operationId: 'createReplay',
  summary: 'Makes the views of tasks, runs, agents and statistics as of a moment, under a name',
  scopes: ['ops'],
  body: ReplayBody,
  idempotent: true,
  answers: { 202: ReplayOrdered },
  async handle({ dependencies, body, context }) {
    const { store } = dependencies;
    const { name, rate = null, keep_hours = KEEP_HOURS } = body;
    const place = await placeOf(body.until, dependencies);
    const views = replayable.map((projection) => projection.name);
    const wish = { name, until: place.position, at: place.at, views, rate };
    const keepFor = keep_hours * HOUR;
    const { position } = await requestReplay(store, { ...wish, keepFor }, context);
    const details = { name, until: place.position, at: place.at };
    const message = `the views as of ${place.at} are being made`;
    return { status: 202, body: { success: true, message, details }, position };
  },
});

const drop = endpoint({
  method: 'delete',
  paths: ['/replays/:name'],
  operationId: 'deleteReplay',
  summary: 'Throws the views of a moment away',
  scopes: ['ops'],
  refusals: ['not_found'],
  answers: { 200: ReplayDropOrdered },
  async handle({ dependencies, parameters, context }) {
    const { store, clock } = dependencies;
    const name = parameters['name'] ?? '';
    const { position } = await dropReplay(store, name, context);
    const done = await untilGone({ store, clock }, name, position ?? BEGINNING);
    const message = done ? 'it is thrown away' : 'it is ordered';
    return { body: { success: true, message, details: { name, done } }, position };
  },
});

/** Views as of a moment. */
export const replayEndpoints: readonly Endpoint[] = [list, request, drop];

async function show(dependencies: ApiDependencies, replay: Replay): Promise<ReplayItem> {
  const { name, until, at, views, rate, by, documents, error } = replay;
  const state = await stateOf(dependencies, replay);
  return {
    ...{ name, state, until, at, views: [...views], rate, by },
    ordered_at: replay.orderedAt,
    kept_until: toIso(replay.keptUntil),
    ...(await progressOf(dependencies, replay, state)),
    ...{ documents, error },
  };
}

/** Where the moment is that a client asks for. @throws HttpError 400 for one before the first event */
async function placeOf(text: string, dependencies: ApiDependencies): Promise<PlaceInLog> {
  const { store } = dependencies;
  const moment = await momentOf(text, dependencies, 'until');
  if (moment.kind === 'instant') {
    const place = await positionAt(dependencies, moment.at);
    if (place === null) throw badRequest([{ field: 'until', issue: 'is before the first event' }]);
    // The moment that was asked for and not that of the event: days of statistics go by it.
    const now = toIso(dependencies.clock.now());
    return { position: place.position, at: moment.at < now ? moment.at : now };
  }
  const { position } = moment;
  const [next] = await store.readAll(position, 1);
  const [last] = await store.readAllBackwards(next?.position ?? null, 1);
  if (last === undefined)
    throw badRequest([{ field: 'until', issue: 'is before the first event' }]);
  return { position, at: last.metadata.occurredAt };
}

/** Waits for a while until nothing is left of a replay. */
async function untilGone(
  { store, clock }: { readonly store: EventStore; readonly clock: Clock },
  name: string,
  after: Position,
): Promise<boolean> {
  const isGone = async (): Promise<boolean> => !(await replaysOf({ store })).has(name);
  const stop = new AbortController();
  const cancel = clock.after(PATIENCE, () => stop.abort());
  const prefixes = [streams.replays()];
  try {
    for await (const message of store.subscribe({ after, prefixes, signal: stop.signal })) {
      if (message.kind === 'events' && (await isGone())) return true;
    }
    return await isGone();
  } finally {
    cancel();
    stop.abort();
  }
}
