// Text from the service, with its instants formatted like all times of the page.

import { html } from '../preact.js';
import { Instant } from './names.js';

const instants = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** @param {string} text its instants are shown in the zone of the page */
export const TextWithTimes = ({ text }) =>
  text.split(instants).map((part, n) => (n % 2 === 1 ? html`<${Instant} at=${part} />` : part));
