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
import { checkMayLookBack, recordReading } from './audit-access.ts';
import type { ReplayState } from '../../schemas/answer-schemas-replays.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import type { Call } from '../../endpoint.ts';
import { HttpError, notFound } from '../../errors.ts';

type Parts = Pick<ApiDependencies, 'store' | 'readModel' | 'clock' | 'coordination'>;

/** What a read that takes `?view=` may be refused with because of it. */
export const viewRefusals = ['not_found', 'conflict'] as const;

/** Where a read goes, and which moment is its present. */
export interface ReadingPlace {
  readonly dependencies: ApiDependencies;
  readonly now: Instant;
}

/**
 * The views that a read goes to: those that follow the log, or those of the replay that it names by `?view=`.
 * @param action as the interface's description writes it; recorded where reads of the past are
 * @throws HttpError 403 without the scope `audit:read`, 404 for an unknown name, 503 while it is being made, 409 where that failed
 */
export async function placeOfReading(
  call: Call<unknown, { readonly view?: string }>,
  action: string,
): Promise<ReadingPlace> {
  const { dependencies } = call;
  const { view: name } = call.query;
  if (name === undefined) return { dependencies, now: dependencies.clock.now() };
  checkMayLookBack(call, 'view');
  const replay = (await replaysOf(dependencies)).get(name);
  if (replay === undefined) throw notFound('replay', name);
  const state = await stateOf(dependencies, replay);
  if (state === 'dropping') throw notFound('replay', name);
  if (state === 'failed') {
    const message = `the replay ${name} could not be made: ${replay.error ?? ''}`;
    throw new HttpError('conflict', message, { view: name, error: replay.error });
  }
  if (state === 'building') {
    const { progress } = await progressOf(dependencies, replay, state);
    const details = { component: 'projections', view: name, progress };
    const headers = { 'Retry-After': '1' };
    throw new HttpError('unavailable', `the replay ${name} is being made`, details, headers);
  }
  await recordReading(call, action);
  const readModel = readModelOfReplay(dependencies.readModel, name);
  return { dependencies: { ...dependencies, readModel }, now: fromIso(replay.at) };
}

/** All that are ordered, and not thrown away. */
export async function replaysOf({
  store,
}: Pick<Parts, 'store'>): Promise<ReadonlyMap<string, Replay>> {
  const { state } = await load(store, streams.replays(), replaysFold);
  return state.known;
}

/** What becomes of a replay at present. One whose views a new release folds otherwise is made again. */
export async function stateOf(parts: Parts, replay: Replay): Promise<ReplayState> {
  const { name, version, dropping, error, keptUntil, documents, views } = replay;
  if (dropping || keptUntil <= parts.clock.now()) return 'dropping';
  if (error !== null) return 'failed';
  if (documents === null) return 'building';
  const live = await Promise.all(
    replayable
      .filter((projection) => views.includes(projection.name))
      .map((projection) => parts.readModel.liveGeneration(replayedAs(projection, name))),
  );
  return live.every((generation) => generation === version) ? 'ready' : 'building';
}

/** How far it is, as the projector has said last. */
export async function progressOf(
  { coordination }: Pick<Parts, 'coordination'>,
  { name, version }: Replay,
  state: ReplayState,
): Promise<{ readonly progress: number; readonly events_per_second: number }> {
  if (state !== 'building') return { progress: state === 'ready' ? 1 : 0, events_per_second: 0 };
  const told = parseReplayProgress(await coordination.recall(REPLAY_REPORT));
  if (told?.name !== name || told.version !== version) return { progress: 0, events_per_second: 0 };
  const { progress, events_per_second } = told;
  return { progress, events_per_second };
}
