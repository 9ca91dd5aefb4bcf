import { fromIso, type Instant } from '../../../domain/clock.ts';
import { load } from '../../../domain/handle.ts';
import { replaysFold, type Replay } from '../../../domain/operators/replays.ts';
import { streams } from '../../../domain/streams.ts';
import { parseReplayProgress, REPLAY_REPORT } from '../../../projections/replays/replay-report.ts';
import {
  readModelOfReplay,
  replayable,
  replayedAs,
} from '../../../projections/replays/replay-views.ts';
import { recordReading, requireAuditScope } from './audit-access.ts';
import type { ReplayState } from '../../schemas/response-schemas-replays.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import type { Call } from '../../endpoint.ts';
import { HttpError, notFound } from '../../errors.ts';

type Stores = Pick<ApiDependencies, 'store' | 'readModel' | 'clock' | 'coordination'>;

/** Errors of `?view=`. */
export const viewRefusals = ['not_found', 'conflict'] as const;

/** The read model of a read, and the instant that counts as its present. */
export interface ReadingPlace {
  readonly dependencies: ApiDependencies;
  readonly now: Instant;
}

/**
 * The views that a request reads: the live ones, or those of the replay that `?view=` names.
 * @throws HttpError 403 without the scope `audit:read`, 404 for an unknown replay, 503 while the replay is being built,
 *   409 if building it failed
 */
export async function placeOfReading(
  call: Call<unknown, { readonly view?: string }>,
): Promise<ReadingPlace> {
  const { dependencies } = call;
  const { view: name } = call.query;
  if (name === undefined) return { dependencies, now: dependencies.clock.now() };
  requireAuditScope(call, 'view');
  const replay = (await replaysOf(dependencies)).get(name);
  if (replay === undefined) throw notFound('replay', name);
  const state = await stateOf(dependencies, replay);
  if (state === 'dropping') throw notFound('replay', name);
  if (state === 'failed') {
    const message = `the replay ${name} could not be built: ${replay.error ?? ''}`;
    throw new HttpError('conflict', message, { view: name, error: replay.error });
  }
  if (state === 'building') {
    const { progress } = await progressOf(dependencies, replay, state);
    const details = { component: 'projections', view: name, progress };
    const headers = { 'Retry-After': '1' };
    throw new HttpError('unavailable', `the replay ${name} is being built`, details, headers);
  }
  await recordReading(call);
  const readModel = readModelOfReplay(dependencies.readModel, name);
  return { dependencies: { ...dependencies, readModel }, now: fromIso(replay.at) };
}

/** All replays by name, except deleted ones. */
export async function replaysOf({
  store,
}: Pick<Stores, 'store'>): Promise<ReadonlyMap<string, Replay>> {
  const { state } = await load(store, streams.replays(), replaysFold);
  return state.known;
}

/** The state of a replay. It is built again if a new release computes its views differently. */
export async function stateOf(stores: Stores, replay: Replay): Promise<ReplayState> {
  const { name, version, dropping, error, keptUntil, documents, views } = replay;
  if (dropping || keptUntil <= stores.clock.now()) return 'dropping';
  if (error !== null) return 'failed';
  if (documents === null) return 'building';
  const live = await Promise.all(
    replayable
      .filter((projection) => views.includes(projection.name))
      .map((projection) => stores.readModel.liveGeneration(replayedAs(projection, name))),
  );
  return live.every((generation) => generation === version) ? 'ready' : 'building';
}

/** The progress that the projector reported last. */
export async function progressOf(
  { coordination }: Pick<Stores, 'coordination'>,
  { name, version }: Replay,
  state: ReplayState,
): Promise<{ readonly progress: number; readonly events_per_second: number }> {
  if (state !== 'building') return { progress: state === 'ready' ? 1 : 0, events_per_second: 0 };
  const report = parseReplayProgress(await coordination.recall(REPLAY_REPORT));
  const isOfReplay = report?.name === name && report.version === version;
  const { progress, events_per_second } = isOfReplay
    ? report
    : { progress: 0, events_per_second: 0 };
  return { progress, events_per_second };
}
