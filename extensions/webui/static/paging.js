// Lists that go on: newer and older pages, and filters that stand in the page's address.

import { button, h } from './dom.js';
import { count } from './times.js';

/** Pages of a list that is read by cursors. */
export class Pages {
  #cursors = [undefined];

  get cursor() {
    return this.#cursors.at(-1);
  }

  /** Back to the first one: something else is asked for. */
  reset() {
    this.#cursors = [undefined];
  }

  /**
   * How many there are, and the buttons to the pages beside this one.
   * @param {{total: number | null, next_cursor: string | null}} page
   * @param {string} one what a single one is called
   * @param {() => Promise<void>} load reads the page that was gone to
   */
  bar({ total, next_cursor }, one, load, several = `${one}s`) {
    const go = (change) => () => {
      change();
      return load();
    };
    const many = total === null ? '' : `${count(total)} ${total === 1 ? one : several}`;
    const at = this.#cursors.length;
    return h(
      'div.row.middle.pages',
      {},
      h('span.soft', {}, at > 1 || next_cursor !== null ? `${many}, page ${at}` : many),
      at > 1 &&
        button(
          'Newer',
          go(() => this.#cursors.pop()),
          '.small',
        ),
      next_cursor !== null &&
        button(
          'Older',
          go(() => this.#cursors.push(next_cursor)),
          '.small',
        ),
    );
  }
}

/** Keeps filters in the address, so that a view can be shared and come back to. */
export function keepInAddress(view, filters) {
  const given = Object.entries(filters).filter(([, value]) => value !== '' && value !== null);
  const query = new URLSearchParams(given).toString();
  history.replaceState(null, '', query === '' ? `#/${view}` : `#/${view}?${query}`);
}

/** Calls after the last of several changes; not any more once the view is left, as it would take the place of the next. */
export function settled(milliseconds, act, signal) {
  let timer;
  signal.addEventListener('abort', () => clearTimeout(timer));
  return () => {
    clearTimeout(timer);
    if (!signal.aborted) timer = setTimeout(() => void act(), milliseconds);
  };
}

/**
 * Who asks anew before the answer has come, having chosen something else, is shown the latest answer alone, whichever
 * comes last.
 * @returns {() => () => boolean} begins a turn: whether it is the latest still, of a view that nobody has left
 */
export function turns(signal) {
  let latest = 0;
  return () => {
    const turn = (latest += 1);
    return () => !signal.aborted && turn === latest;
  };
}
