// How components read data from the service and keep them up to date.

import { useEffect, useLayoutEffect, useRef, useState } from './preact.js';
import { isOutage } from './client.js';

/** The delay before a view that is behind is read again. Milliseconds. */
const BEHIND_DELAY = 1000;
/** Between attempts to read during an outage: the first pause, and the longest. Milliseconds. */
export const FIRST_RETRY = 1000;
export const MAX_RETRY = 8000;
/** The delay after a choice until the earlier data count as old, if no new data have arrived. Milliseconds. */
const OLD_DELAY = 100;

/** Reads something, and never more than once at a time when it is refreshed. Only the latest read counts. */
class Reader {
  #abort = new AbortController();
  #turn = 0;
  #isReading = false;
  #timer = null;
  #oldTimer = null;
  #retryTimer = null;
  #retryDelay = FIRST_RETRY;
  /** The refresh that is still to come: `{after}`. */
  #pending = null;
  /** The log position that the latest read had to include. */
  #after;
  #publish;

  /** Set at each drawing, because the request may have changed. */
  load;
  pace = 0;
  /** Refreshes wait until this is over. */
  isPaused = false;

  constructor(publish) {
    this.#publish = publish;
  }

  /**
   * Reads now, even while another read is in progress.
   * @param position in the log that the views must have reached. Default: that of the previous read
   */
  read = async (position) => {
    const turn = (this.#turn += 1);
    const after = (this.#after = position ?? this.#after);
    this.#isReading = true;
    clearTimeout(this.#retryTimer);
    try {
      const data = await this.load(this.#abort.signal, after);
      if (turn === this.#turn) {
        this.#retryDelay = FIRST_RETRY;
        this.#publish({ data, error: null });
      }
    } catch (error) {
      if (turn !== this.#turn) return;
      if (error.status === 503 && after !== undefined) this.#wait({ after }, BEHIND_DELAY);
      else this.#fail(error);
    }
    if (turn !== this.#turn) return;
    clearTimeout(this.#oldTimer);
    this.#isReading = false;
    if (this.#pending !== null) this.refresh(this.#pending.after);
  };

  /** Shows the error. After an outage the view recovers by itself. */
  #fail(error) {
    this.#publish(({ data }) => ({ data, error }));
    if (!isOutage(error)) return;
    this.#retryTimer = setTimeout(() => this.refresh(), this.#retryDelay);
    this.#retryDelay = Math.min(MAX_RETRY, this.#retryDelay * 2);
  }

  /** Reads other data now. The previous data are marked as old unless the response comes soon. */
  change = () => {
    const mark = () => this.#publish((result) => ({ ...result, isOld: result.data !== undefined }));
    clearTimeout(this.#oldTimer);
    this.#oldTimer = setTimeout(mark, OLD_DELAY);
    void this.read();
  };

  /** Reads soon. Requests until then share one read. */
  refresh = (after) => {
    this.#pending = { after: after ?? this.#pending?.after };
    if (!this.#isReading) this.#wait(this.#pending, this.pace);
  };

  #wait(pending, milliseconds) {
    this.#pending ??= pending;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (document.hidden || this.isPaused || isTextSelected())
        return this.#wait(this.#pending, BEHIND_DELAY);
      const { after } = this.#pending;
      this.#pending = null;
      return this.read(after);
    }, milliseconds);
  }

  stop() {
    this.#turn += 1;
    clearTimeout(this.#timer);
    clearTimeout(this.#oldTimer);
    clearTimeout(this.#retryTimer);
    this.#abort.abort();
  }
}

/** Whether a person has selected text of the page, which a redraw might replace. */
export const isTextSelected = () => !getSelection().isCollapsed;

/**
 * Reads at once, and again when one of `deps` changes. The earlier data stay until new data arrive. A read that fails
 * because of an outage is repeated.
 * @param {(signal: AbortSignal, after?: string) => Promise<unknown>} load
 * @param {{every?: number, pace?: number, isPaused?: boolean}} options milliseconds: `every` is the interval of refreshes
 *   while the page is visible, `pace` the shortest time before one. Nothing is refreshed while text is selected or while
 *   `isPaused`
 * @returns `{data, error, isOld, reload, refresh}`; `data` is undefined until it was read. `isOld` means that the data
 *   still belong to earlier `deps`
 */
export function useData(load, deps, { every, pace = 0, isPaused = false } = {}) {
  const [result, publish] = useState({ data: undefined, error: null });
  const reader = useReader(publish);
  reader.load = load;
  reader.pace = pace;
  reader.isPaused = isPaused;
  useLayoutEffect(() => reader.change(), deps);
  useInterval(reader.refresh, every);
  return { ...result, reload: reader.read, refresh: reader.refresh };
}

function useReader(publish) {
  const reader = useRef(null);
  reader.current ??= new Reader(publish);
  useLayoutEffect(() => () => reader.current.stop(), []);
  return reader.current;
}

/** Calls repeatedly while the page is visible; never without milliseconds. */
export function useInterval(act, milliseconds) {
  useEffect(() => {
    if (milliseconds === undefined) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) act();
    }, milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
}

/** The value once it has not changed for a number of milliseconds; at once the first time. */
export function useDebounced(value, milliseconds) {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
