// Lists that are kept up to date, and that a person can pause.

import { html, useEffect, useRef, useState } from '../preact.js';
import { useData, useInterval } from '../data.js';
import { LiveMark } from '../live.js';
import { Button } from './elements.js';

/** A pause for {@link useUpdates}, which the reads of a view can share: `{isPaused, pause(isPaused)}`. */
export function usePause() {
  const [isPaused, pause] = useState(false);
  return { isPaused, pause };
}

/**
 * Reads as {@link useData} does, repeatedly unless a person pauses the updates.
 * @param {{every?: number | null | ((data: unknown) => number | undefined), pace?: number, pausing?: object}} options
 *   `every` is the interval of reads in milliseconds, which may depend on the data. undefined: the data no longer change;
 *   null: they do, but are read only on request. `pausing`: the pause that the view's reads share. Default: its own
 * @returns the result of `useData`; for {@link Updates} also `liveness`, which is undefined while the data do not
 *   change, and `pause(isPaused)`
 */
export function useUpdates(load, deps, { every, pace, pausing } = {}) {
  const own = usePause();
  const { isPaused, pause } = pausing ?? own;
  const result = useData(load, deps, { pace, isPaused });
  const interval = typeof every === 'function' ? every(result.data) : every;
  useInterval(result.refresh, isPaused ? undefined : (interval ?? undefined));
  const wasPaused = useRef(isPaused);
  useEffect(() => {
    if (wasPaused.current && !isPaused) result.refresh();
    wasPaused.current = isPaused;
  }, [isPaused]);
  return { ...result, liveness: livenessOf(result, isPaused, interval), pause };
}

/** From the worst to the best. */
const livenesses = ['refused', 'lost', 'connecting', 'live'];

/**
 * For {@link Updates}: the reads that share a pause.
 * @param live how a stream is followed that announces changes; undefined: the reads are repeated without one
 */
export function together({ isPaused, pause }, reads, live) {
  const worst = livenesses.find((each) => reads.some(({ liveness }) => liveness === each));
  const reload = () => Promise.all(reads.map((each) => each.reload()));
  return { liveness: isPaused ? 'paused' : (live ?? worst), pause, reload };
}

function livenessOf({ data, error }, isPaused, every) {
  if (every === undefined) return undefined;
  if (every === null) return 'refused';
  if (isPaused) return 'paused';
  if (error !== null) return 'lost';
  return data === undefined ? 'connecting' : 'live';
}

/**
 * Says whether a list is kept up to date, with a button that pauses and resumes the updates, or that reads a list
 * without updates again. Renders nothing if the list no longer changes.
 * @param of the result of `useUpdates` or `together`
 * @param {string} what the list, for screen readers. Not needed if a view has one list
 */
export function Updates({ of: { liveness, pause, reload }, what }) {
  if (liveness === undefined) return null;
  const isPaused = liveness === 'paused';
  const [text, act] =
    liveness === 'refused'
      ? ['Refresh', () => reload()]
      : [isPaused ? 'Resume updates' : 'Pause updates', () => pause(!isPaused)];
  const label = what && `${text}: ${what}`;
  return html`<${LiveMark} state=${liveness} />
    <${Button} kind="small" label=${label} onClick=${act}>${text}<//>`;
}
