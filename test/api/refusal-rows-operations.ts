import type { Row } from './refusal-table.ts';

/** Orders to the whole service. */
export const operationsRows: readonly Row[] = [
  { method: 'GET', path: '/operations', scope: 'ops' },
  {
    method: 'POST',
    path: '/operations/hold',
    scope: 'ops',
    body: { reason: 'maintenance' },
    required: ['reason'],
    faults: [
      ['reason', ''],
      ['reason', 5],
      ['until', 'tomorrow'],
    ],
  },
  {
    method: 'POST',
    path: '/operations/release',
    scope: 'ops',
    body: {},
    faults: [
      ['missed', 'some'],
      ['reason', 'x'],
    ],
  },
];
