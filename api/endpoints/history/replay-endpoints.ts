import { toIso } from '../../../domain/clock.ts';
import { BEGINNING } from '../../../domain/event-store.ts';
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
} from '../../schemas/response-schemas-replays.ts';
import { ReadQuery } from '../../schemas/schemas.ts';
import { parsePointInTime } from './audit-access.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, success, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { awaitState } from '../../serving/await-state.ts';
import { progressOf, replaysOf, stateOf } from './replay-reading.ts';

const HOUR = 3_600_000;

const list = endpoint('GET /replays', {
  operationId: 'listReplays',
  summary: 'Lists the replays: views as of an instant or a position, finished or in progress',
  scopes: ['ops'],
  query: ReadQuery,
  responses: { 200: ReplayList },
  async handle({ dependencies }) {
    const known = [...(await replaysOf(dependencies)).values()];
    return { body: { replays: await Promise.all(known.map((each) => show(dependencies, each))) } };
  },
});

const request = endpoint('POST /replays', {
  operationId: 'createReplay',
  summary: 'Builds the views of tasks, runs, agents and statistics as of an instant, under a name',
  scopes: ['ops'],
  body: ReplayBody,
  idempotent: true,
  responses: { 202: ReplayOrdered },
  async handle({ dependencies, body, context }) {
    const { store } = dependencies;
    const { name, rate = null, keep_hours = KEEP_HOURS } = body;
    const place = await placeOf(body.until, dependencies);
    const views = replayable.map((projection) => projection.name);
    const { position: until, at } = place;
    const wanted = { name, until, at, views, rate, keepFor: keep_hours * HOUR };
    const { position } = await requestReplay(store, wanted, context);
    const message = `the views as of ${at} are being built`;
    return { ...success(message, { name, until, at }, position), status: 202 };
  },
});

const drop = endpoint('DELETE /replays/:name', {
  operationId: 'deleteReplay',
  summary: 'Deletes a replay',
  scopes: ['ops'],
  refusals: ['not_found'],
  responses: { 200: ReplayDropOrdered },
  async handle({ dependencies, parameters, context }) {
    const name = parameters['name'] ?? '';
    const { position } = await dropReplay(dependencies.store, name, context);
    const isGone = (replays: ReadonlyMap<string, Replay>): boolean => !replays.has(name);
    const stream = { stream: streams.replays(), after: position ?? BEGINNING };
    const read = () => replaysOf(dependencies);
    const done = isGone(await awaitState(dependencies, stream, read, isGone));
    const message = done
      ? 'the replay is deleted'
      : 'the order is recorded; the projector has not deleted the replay yet';
    return success(message, { name, done }, position);
  },
});

export const replayEndpoints: readonly Endpoint[] = [list, request, drop];

async function show(dependencies: ApiDependencies, replay: Replay): Promise<ReplayItem> {
  const { name, until, at, views, rate, by, documents, error } = replay;
  const state = await stateOf(dependencies, replay);
  return {
    name,
    state,
    until,
    at,
    views: [...views],
    rate,
    by,
    ordered_at: replay.orderedAt,
    kept_until: toIso(replay.keptUntil),
    ...(await progressOf(dependencies, replay, state)),
    documents,
    error,
  };
}

/** The place of `until` in the log. @throws HttpError 400 for an instant before the first event */
async function placeOf(until: string, dependencies: ApiDependencies): Promise<PlaceInLog> {
  const { store } = dependencies;
  const point = await parsePointInTime('until', until, dependencies);
  if (point.kind === 'instant') {
    const place = await positionAt(dependencies, point.at);
    if (place === null) throw beforeFirstEvent();
    // Statistics use the requested instant, not the instant of the event.
    const now = toIso(dependencies.clock.now());
    return { position: place.position, at: point.at < now ? point.at : now };
  }
  const { position } = point;
  const [next] = await store.readAll(position, 1);
  const [last] = await store.readAllBackwards(next?.position ?? null, 1);
  if (last === undefined) throw beforeFirstEvent();
  return { position, at: last.metadata.occurredAt };
}

const beforeFirstEvent = (): Error =>
  badRequest([{ field: 'until', issue: 'is before the first event' }]);
