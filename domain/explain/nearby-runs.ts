import { fromIso } from '../clock.ts';
import type { Asked } from './asked.ts';
import { explainSkip } from './decided.ts';
import type { Verdict } from './explanation.ts';
import { described, eventsOf, readRun, skipOf, standing, type RunAccount } from './run-account.ts';
import { duration } from './words.ts';

/** How far from an instant a run by hand or by event counts as about it. Milliseconds. */
export const ABOUT = 60_000;

/**
 * Finds the nearest runs of the task by hand, or by event, that were requested within {@link ABOUT} of the instant.
 * They have no stream of their own that could be gone through, so that something must look them up; what they are is
 * then read from their streams.
 * @returns their ids, the nearest first; null where they can't be looked up at present
 */
export type RunFinder = (
  triggers: readonly ('manual' | 'event')[],
) => Promise<readonly string[] | null>;

type Beside = Pick<Verdict, 'sentences' | 'evidence'>;

/** What ran about the instant though the schedule had nothing to do with it. */
export async function besideSchedule(asked: Asked, find: RunFinder): Promise<Beside> {
  const ids = await find(['manual', 'event']);
  if (ids === null) return { sentences: [notLookedUp], evidence: [] };
  const runs = await Promise.all(ids.map((id) => readRun(asked.store, id)));
  const sentences = runs.map(
    (run) => `Outside of the schedule there is ${described(run, asked.words)}.`,
  );
  return { sentences, evidence: runs.flatMap(eventsOf) };
}

const notLookedUp = 'Runs by hand or by event could not be looked up at present.';

/** A task that is triggered by events: which event triggered it about the instant, or why none did. */
export async function explainEventTask(asked: Asked, find: RunFinder): Promise<Verdict> {
  const { at, era, history, store, words } = asked;
  const runsBy = async (trigger: 'manual' | 'event'): Promise<readonly RunAccount[] | null> => {
    const ids = await find([trigger]);
    return ids === null ? null : Promise.all(ids.map((id) => readRun(store, id)));
  };
  // Those alone: however many by hand may be nearer.
  const triggered = (await runsBy('event')) ?? [];
  const [nearest] = triggered;
  if (nearest !== undefined) return ofTriggered(asked, nearest, triggered.length);
  const pattern = era.definition.schedule_expr ?? '#';
  const nothing = { fired: false, runId: null } as const;
  const listens = `An event task has no times of its own: it listens to topics like "${pattern}".`;
  if (at - ABOUT > asked.now) {
    const sentences = [`${words.when(at)} is still to come.`, listens];
    return { ...nothing, reason: 'not_in_schedule', sentences, evidence: [era.set] };
  }
  const pause = history.pauseAt(at);
  if (pause !== null) {
    const { paused } = pause;
    const sentences = [
      `The task was paused since ${words.at(paused.metadata.occurredAt)} ${words.by(paused)}: events did not trigger it.`,
      listens,
    ];
    return { ...nothing, reason: 'paused', sentences, evidence: [paused, pause.ended] };
  }
  const runs = await runsBy('manual');
  const sentences =
    runs === null
      ? [listens, notLookedUp]
      : [`No event triggered the task within ${duration(ABOUT)} of ${words.when(at)}.`, listens];
  const byHand = (runs ?? []).map((run) => `There is ${described(run, words)}.`);
  const evidence = [era.set, ...(runs ?? []).flatMap(eventsOf)];
  return {
    ...nothing,
    reason: 'not_in_schedule',
    sentences: [...sentences, ...byHand],
    evidence,
  };
}

async function ofTriggered(asked: Asked, run: RunAccount, count: number): Promise<Verdict> {
  const { words } = asked;
  const { first } = run;
  const event = first?.type === 'RunRequested' ? first.data.event : null;
  const what =
    event === null
      ? `The event that asked for run ${run.id}`
      : `The event ${event.id} on the topic ${event.topic}, published at ${words.when(fromIso(event.published_at))},`;
  const others =
    count > 1
      ? [`Within a minute of that instant more runs were triggered; this one is the nearest.`]
      : [];
  const skip = skipOf(run);
  if (skip === null) {
    const sentences = [
      `${what} triggered the task: run ${run.id} ${standing(run, words)}.`,
      ...others,
    ];
    return { fired: true, reason: 'fired', sentences, runId: run.id, evidence: eventsOf(run) };
  }
  const because = await explainSkip(asked, skip.event);
  const sentences = [
    `${what} triggered the task, but it did not run: ${because.sentence}`,
    ...others,
  ];
  const evidence = [...eventsOf(run), ...because.evidence];
  return { fired: false, reason: skip.reason, sentences, runId: run.id, evidence };
}
