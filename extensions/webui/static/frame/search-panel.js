// The search over tasks, runs, errors, agents, owners, views and actions, which the keyboard opens from everywhere.

import { html, useLayoutEffect, useRef, useState } from '../preact.js';
import { useData, useDebounced } from '../data.js';
import { useStore } from '../store.js';
import { counted } from '../times.js';
import { Panel, closePanel } from '../ui/panel.js';
import { findActions, findThings, runSearch } from './search-sources.js';

/** The delay after the last key, in milliseconds. */
const TYPING_DELAY = 120;

export function SearchPanel() {
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const list = useRef();
  const asked = useDebounced(typed.trim(), TYPING_DELAY);
  const things = useData(
    async (signal) => ({ asked, groups: await findThings(asked, signal) }),
    [asked],
  );
  /** Enter was pressed before there were results for the typed text. */
  const [isHurried, hurry] = useState(false);
  const isCurrent = things.data?.asked === typed.trim();
  // The list of actions depends on whether the service is on hold.
  useStore(({ hold }) => hold);
  const found = [...(things.data?.groups ?? []), ...findActions(typed.trim())];
  const groups = [...found, runSearch(typed.trim())].filter((group) => group.items.length > 0);
  const items = groups.flatMap((group) => group.items);
  const count = found.flatMap((group) => group.items).length;
  const chosen = Math.min(at, items.length - 1);
  useLayoutEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen, items.length]);
  const open = (item) => {
    closePanel();
    if (item.to !== undefined) location.hash = `#/${item.to}`;
    else void item.act();
  };
  useLayoutEffect(() => {
    if (!isHurried || !(isCurrent || things.error !== null)) return;
    hurry(false);
    if (isCurrent && items.length > 0) open(items[chosen]);
  }, [isHurried, isCurrent, things.error]);
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  const press = (event) => {
    if (event.isComposing) return;
    if (event.key === 'Enter') {
      event.preventDefault();
      hurry(true);
    } else if (event.key in steps && items.length > 0) {
      event.preventDefault();
      setAt((chosen + steps[event.key] + items.length) % items.length);
    }
  };
  const input = ({ target }) => {
    setTyped(target.value);
    setAt(0);
    hurry(false);
  };
  return html`<${Panel} title="Search" kind="search">
    <input type="text" role="combobox" aria-label="Search tasks, runs, errors, agents and actions"
      placeholder="Search tasks, runs, errors, agents and actions" autocomplete="off" spellcheck="false"
      aria-expanded="true" aria-autocomplete="list" aria-controls="found" autofocus
      aria-activedescendant=${items.length > 0 ? `found-${chosen}` : null}
      value=${typed} onInput=${input} onKeyDown=${press} />
    <div id="found" role="listbox" aria-label="Results" ref=${list}>
      ${groups.map(
        (group) =>
          html`<${Group} key=${group.name} ...${group} all=${items} chosen=${items[chosen]} open=${open} />`,
      )}
    </div>
    <p class="hint" role="status">${statusOf(things.error, isCurrent, count, asked)}</p>
  <//>`;
}

function statusOf(error, isCurrent, count, asked) {
  if (error !== null) return error.message;
  if (!isCurrent) return 'Searching …';
  return count === 0 ? `Nothing is called “${asked}”.` : counted(count, 'result');
}

const Group = ({ name, items, all, chosen, open }) =>
  html`<div role="group" aria-label=${name}>
    <div class="soft" aria-hidden="true">${name}</div>
    ${items.map(
      (item) => html`<div role="option" key=${item.key} id="found-${all.indexOf(item)}"
        aria-selected=${item === chosen} onClick=${() => open(item)}>
        <span>${item.text}</span> <span class="soft">${item.more}</span>
      </div>`,
    )}
  </div>`;
