// The keyboard shortcuts of the page, and the switch that turns off those of a single key.

import { html } from '../preact.js';
import { prefer } from '../preferences.js';
import { useStore } from '../store.js';
import { Button } from '../ui/elements.js';
import { Panel, closePanel } from '../ui/panel.js';

const keys = [
  ['Ctrl K', 'search tasks, runs, agents and actions'],
  ['/', 'go to the view’s search field'],
  ['j', 'next row of a list'],
  ['k', 'previous row'],
  ['Enter', 'open the row; in a search, go to the first row'],
  ['?', 'show these shortcuts'],
  ['Esc', 'close'],
];

export function KeysPanel() {
  const isOn = useStore((state) => state.keys === 'on');
  const change = ({ target }) => prefer('keys', target.checked ? 'on' : 'off');
  return html`<${Panel} title="Keyboard shortcuts" kind="keys">
    <h2>Keyboard shortcuts</h2>
    <dl>${keys.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl>
    <p><label><input type="checkbox" checked=${isOn} onChange=${change} /> Shortcuts of a single key</label></p>
    <div class="row end"><${Button} onClick=${closePanel}>Close<//></div>
  <//>`;
}
