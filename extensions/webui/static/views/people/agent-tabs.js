// The parts of Agents, each with an address of its own.

import { html } from '../../preact.js';
import { Tabs } from '../../ui/tabs.js';

const parts = [
  ['agents', 'All agents'],
  ['agents/keys', 'Keys by expiry'],
  ['agents/resent', 'Messages sent twice'],
];

/** @param {string} current the path of the part that is shown */
export const AgentTabs = ({ current }) =>
  html`<${Tabs} label="Agents" parts=${parts} current=${current} />`;
