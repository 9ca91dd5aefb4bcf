// Reads the audit, and adds new entries as they are sent live.

import { useLayoutEffect, useMemo, useReducer, useRef } from '../../preact.js';
import { useRemembered } from '../../address.js';
import { call, isOutage } from '../../client.js';
import { FIRST_RETRY, MAX_RETRY, isTextSelected } from '../../data.js';

const PAGE = 50;
/** With more live entries than this, the first page is read again and the others are dropped. */
const MAX_LIVE = 200;
/** The interval between two drawings of live entries. Milliseconds. */
const BEAT = 250;
/** The delay before a view that is behind is read again. Milliseconds. */
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
  /** Live entries, above the entries that were read. */
  #fresh = 0;
  #timer = null;
  #retryTimer = null;
  #retryDelay = FIRST_RETRY;

  constructor(query, publish) {
    this.#query = query;
    this.#publish = publish;
  }

  /** Reads the first page. @param after position that the view must have passed */
  read = (after) => this.#queue(() => this.#read({ after }));

  /** Reads one page more. */
  readOlder = () =>
    this.#queue(async () => {
      const { next_cursor: cursor } = this.page;
      if (cursor !== null) await this.#read({ cursor });
    });

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
      const older = after === undefined ? [] : this.#olderThan(page.items.at(-1));
      this.items = [...before, ...page.items, ...older];
      if (older.length > 0) page.next_cursor = this.page.next_cursor;
      Object.assign(this, { page, error: null, isRead: true });
      this.#retryDelay = FIRST_RETRY;
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 503 && after !== undefined) {
        setTimeout(() => signal.aborted || this.read(after), BEHIND_DELAY);
        return;
      }
      // Entries that were read stay during an outage.
      if (!this.isRead || !isOutage(error)) this.error = error;
      if (isOutage(error)) this.#retry({ cursor, after });
    } finally {
      this.#isRereading = false;
    }
    this.#publish();
    // More entries arrived in the meantime than are kept.
    if (this.error === null && this.#fresh > MAX_LIVE) this.#drawSoon();
  }

  /** The entries of older pages, if there is no gap before them. */
  #olderThan(last) {
    const at = this.items.findIndex(({ position }) => position === last?.position);
    return at === -1 ? [] : this.items.slice(at + 1);
  }

  #retry(request) {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => this.#queue(() => this.#read(request)), this.#retryDelay);
    this.#retryDelay = Math.min(MAX_RETRY, this.#retryDelay * 2);
  }

  /** The next live stream will not continue the last one. */
  restart() {
    this.#hasStarted = false;
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
      if (this.#fresh <= MAX_LIVE && isTextSelected()) return this.#drawSoon();
      if (this.#fresh <= MAX_LIVE) this.#publish();
      else this.#reread();
    }, BEAT);
  }

  /** One entry more is kept than may be live, so that they are read again if more come in the meantime. */
  #reread() {
    this.items = this.items.slice(0, MAX_LIVE + 1);
    if (this.#isRereading) return;
    this.#isRereading = true;
    void this.read();
  }

  stop() {
    this.#abort.abort();
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#timer);
  }
}

/**
 * @param {Record<string, string>} query
 * @returns `entries` that match the query; `shown`: the previous ones until these are read; `readOlder` reads a page
 *   more, which going back reads again
 */
export function useEntries(query) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const key = JSON.stringify(query);
  const entries = useMemo(() => new Entries(query, redraw), [key]);
  const [older, setOlder] = useRemembered('older entries', { key, pages: 0 });
  const pages = older.key === key ? older.pages : 0;
  useLayoutEffect(() => {
    void entries.read();
    for (let page = 0; page < pages; page += 1) void entries.readOlder();
    return () => entries.stop();
  }, [entries]);
  const shown = useRef(null);
  if (entries.isRead || entries.error !== null) shown.current = entries;
  const readOlder = () => {
    setOlder({ key, pages: pages + 1 });
    return entries.readOlder();
  };
  return { entries, shown: shown.current, readOlder };
}
