// How components read from the service, and keep what they have read up to date.

import { useEffect, useLayoutEffect, useRef, useState } from './preact.js';

/** Before a view that is behind is asked again. Milliseconds. */
const BEHIND_DELAY = 1000;

/** Reads something, and never more than once at a time when it is refreshed. Only the latest read counts. */
class Reader {
  #abort = new AbortController();
  #turn = 0;
  #isReading = false;
  #timer = null;
  /** The refresh that is still to come: `{after}`. */
  #pending = null;
  /** The latest position that a read had to pass. */
  #after;
  #publish;

  /** Set at each drawing: what is read may have changed. */
  load;
  pace = 0;

  constructor(publish) {
    this.#publish = publish;
  }

  /**
   * Reads now, whatever else is under way.
   * @param position which the read views must have passed; default: that of the read before, which this one replaces
   */
  read = async (position) => {
    const turn = (this.#turn += 1);
    const after = (this.#after = position ?? this.#after);
    this.#isReading = true;
    try {
      const data = await this.load(this.#abort.signal, after);
      if (turn === this.#turn) this.#publish({ data, error: null });
    } catch (error) {
      if (turn !== this.#turn) return;
      if (error.status === 503 && after !== undefined) this.#wait({ after }, BEHIND_DELAY);
      else this.#publish(({ data }) => ({ data, error }));
    }
    if (turn !== this.#turn) return;
    this.#isReading = false;
    if (this.#pending !== null) this.refresh(this.#pending.after);
  };

  /** Reads soon: once for all that is asked for until then. */
  refresh = (after) => {
    this.#pending = { after: after ?? this.#pending?.after };
    if (!this.#isReading) this.#wait(this.#pending, this.pace);
  };

  #wait(pending, milliseconds) {
    this.#pending ??= pending;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (document.hidden || isTextSelected()) return this.#wait(this.#pending, BEHIND_DELAY);
      const { after } = this.#pending;
      this.#pending = null;
      return this.read(after);
    }, milliseconds);
  }

  stop() {
    this.#turn += 1;
    clearTimeout(this.#timer);
    this.#abort.abort();
  }
}

/** Whether a person has selected text of the page: a refresh might replace it. */
const isTextSelected = () => !getSelection().isCollapsed;

/**
 * Reads at once, and again when one of `deps` changes. Earlier data stay until then.
 * @param {(signal: AbortSignal, after?: string) => Promise<unknown>} load
 * @param {{every?: number, pace?: number}} options milliseconds: refreshed as often as `every`, while the page is
 *   visible; `pace` is the least time before a refresh. Nothing is refreshed
 *   while text is selected
 * @returns `{data, error, reload, refresh}`; `data` is undefined until it was read
 */
export function useData(load, deps, { every, pace = 0 } = {}) {
  const [result, publish] = useState({ data: undefined, error: null });
  const reader = useReader(publish);
  reader.load = load;
  reader.pace = pace;
  useLayoutEffect(() => void reader.read(), deps);
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

/** The value when it has not changed for so many milliseconds; at once the first time. */
export function useDebounced(value, milliseconds) {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
