// The parts of System, each with an address of its own.

import { html } from '../../preact.js';
import { Tabs } from '../../ui/tabs.js';

const parts = [
  ['system', 'Health and hold'],
  ['system/read-models', 'Read models'],
  ['system/streams', 'Streams'],
];

/** @param {string} current the path of the part that is shown */
export const SystemTabs = ({ current }) =>
  html`<${Tabs} label="System" parts=${parts} current=${current} />`;
