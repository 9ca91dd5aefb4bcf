// Reads the audit, and adds new entries as they are sent live.

import { useLayoutEffect, useMemo, useReducer, useRef } from '../../preact.js';
import { call } from '../../client.js';

const PAGE = 50;
/** With more live entries than that, the first page is read again and the others are dropped. */
const MAX_LIVE = 200;
/** Between two drawings of live entries. Milliseconds. */
const BEAT = 250;
/** Before a view that is behind is asked again. Milliseconds. */
const BEHIND_DELAY = 1000;

/** The entries that match a query. Reads run one after the other. */
class Entries {
  items = [];
  page = { next_cursor: null, total: null };
  error = null;
  /** Whether the first page was read. */
  isRead = false;
  #query;
  #publish;
  #abort = new AbortController();
  #reads = Promise.resolve();
  #isRereading = false;
  #hasStarted = false;
  /** Live entries on top of those that were read. */
  #fresh = 0;
  #timer = null;

  constructor(query, publish) {
    this.#query = query;
    this.#publish = publish;
  }

  /** Reads the first page. @param after position that the view must have passed */
  read = (after) => this.#queue(() => this.#read({ after }));

  /** Reads one page more. */
  readOlder = () => this.#queue(() => this.#read({ cursor: this.page.next_cursor }));

  #queue(work) {
    this.#reads = this.#reads.then(work);
    return this.#reads;
  }

  async #read({ cursor, after }) {
    const { signal } = this.#abort;
    try {
      const query = { ...this.#query, limit: PAGE, cursor, after };
      const page = await call('GET', 'audit', { query, signal });
      const first = page.items[0]?.position ?? '';
      const before = cursor ? this.items : this.items.filter(({ position }) => position > first);
      if (!cursor) this.#fresh = before.length;
      this.items = [...before, ...page.items];
      Object.assign(this, { page, error: null, isRead: true });
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 503 && after !== undefined) {
        setTimeout(() => signal.aborted || this.read(after), BEHIND_DELAY);
        return;
      }
      this.error = error;
    } finally {
      this.#isRereading = false;
    }
    this.#publish();
    // More came meanwhile than are kept.
    if (this.error === null && this.#fresh > MAX_LIVE) this.#drawSoon();
  }

  /** Takes an event of the live stream. */
  take = (name, item) => {
    // Reads the entries between the first page and the start of the live stream.
    if (name === 'live.started' && !this.#hasStarted) {
      this.#hasStarted = true;
      void this.read(item.position);
    }
    if (!name.startsWith('audit.')) return;
    if (this.items.some(({ position }) => position === item.position)) return;
    this.items = [item, ...this.items];
    this.#fresh += 1;
    this.#drawSoon();
  };

  #drawSoon() {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (this.#fresh <= MAX_LIVE) this.#publish();
      else this.#reread();
    }, BEAT);
  }

  /** One entry more is kept than may be live, so that they are read again if more come meanwhile. */
  #reread() {
    this.items = this.items.slice(0, MAX_LIVE + 1);
    if (this.#isRereading) return;
    this.#isRereading = true;
    void this.read();
  }

  stop() {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }
}

/**
 * @param {Record<string, string>} query
 * @returns `entries` that match the query, and those that are `shown` until they are read
 */
export function useEntries(query) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const entries = useMemo(() => new Entries(query, redraw), [JSON.stringify(query)]);
  useLayoutEffect(() => {
    void entries.read();
    return () => entries.stop();
  }, [entries]);
  const shown = useRef(null);
  if (entries.isRead || entries.error !== null) shown.current = entries;
  return { entries, shown: shown.current };
}
