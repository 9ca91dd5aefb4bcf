// The JSON field of a pipeline, with completion by the schemas of steps and tools, and a list of its faults.

import { html, useLayoutEffect, useRef, useState } from '../../preact.js';
import { call } from '../../client.js';
import { useData } from '../../data.js';
import { Field } from '../../ui/field.js';
import { completionAt, knowledgeOf } from './completion.js';

/** The schemas for completion. undefined until they are read, or if the agent lacks the scope. */
export function useKnowledge() {
  return useData(async (signal) => knowledgeOf(await call('GET', 'tools', { signal })), []).data;
}

/**
 * @param field the properties of the field, as {@link Field} takes them
 * @param {string[]} findings likely mistakes, which do not prevent saving
 */
export function PipelineEditor({ field, findings }) {
  const knowledge = useKnowledge();
  const place = useRef(null);
  const [shown, setShown] = useState(null);
  const [active, setActive] = useState(0);
  useLayoutEffect(() => {
    if (place.current === null) return;
    const { element, caret } = place.current;
    place.current = null;
    element.setSelectionRange(caret, caret);
  });
  const look = (element) => {
    const { value, selectionStart, selectionEnd } = element;
    const isCaret = selectionStart === selectionEnd;
    const found =
      knowledge !== undefined && isCaret ? completionAt(value, selectionStart, knowledge) : null;
    setShown(found);
    setActive(0);
  };
  const accept = (element, { text }) => {
    const { value, selectionStart: caret } = element;
    const after = shown.isKey ? '": ' : '"';
    const rest = value.slice(caret);
    const kept = shown.isClosed ? rest.slice(rest.indexOf('"') + 1) : rest;
    // A replaced key keeps its colon.
    const end = shown.isKey && /^\s*:/.test(kept) ? '"' : after;
    const next = `${value.slice(0, shown.from)}${text}${end}`;
    place.current = { element, caret: next.length };
    setShown(null);
    field.onInput(next + kept);
  };
  const onKeyDown = (event) => {
    if (shown === null || event.isComposing) return;
    const { items } = shown;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move !== undefined) setActive((active + move + items.length) % items.length);
    else if (event.key === 'Enter' || event.key === 'Tab') accept(event.target, items[active]);
    else if (event.key === 'Escape') setShown(null);
    else return;
    event.preventDefault();
  };
  const onInput = (value) => {
    field.onInput(value);
    look(document.getElementById(`field-${field.id}`));
  };
  const isOpen = shown !== null;
  return html`<div class="editor">
    <${Field} label="Pipeline (JSON)" type="textarea" rows="14" hint="Steps run one after the other. Names of fields and tools are suggested within quotes."
      ...${field} onInput=${onInput} onKeyDown=${onKeyDown} onBlur=${() => setShown(null)}
      aria-autocomplete="list" aria-controls=${isOpen ? 'completion' : null}
      aria-activedescendant=${isOpen ? `completion-${active}` : null} />
    ${
      isOpen &&
      html`<ul class="completion" id="completion" role="listbox" aria-label="What can be written here">
        ${shown.items.map(
          (
            item,
            n,
          ) => html`<li key=${item.text} id="completion-${n}" role="option" aria-selected=${n === active}
            onMouseDown=${(event) => {
              event.preventDefault();
              accept(document.getElementById(`field-${field.id}`), item);
            }}><code>${item.text}</code><span class="soft">${item.about}</span></li>`,
        )}
      </ul>`
    }
    <ul class="findings" aria-live="polite" id="findings">
      ${findings.map((each) => html`<li key=${each} class="fault">${each}</li>`)}
    </ul>
  </div>`;
}
