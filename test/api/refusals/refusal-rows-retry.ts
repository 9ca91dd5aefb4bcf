import { newId } from '../../../domain/ids.ts';
import type { Row } from './refusal-table.ts';

/** Invalid selections of runs. */
const selections = [
  ['run_ids', []],
  ['run_ids', ['x'], 'run_ids.0'],
  ['id', 'abc'],
  ['input', ''],
  ['event_id', 'x'],
] as const;

/** Invalid fields of a retry and a redrive. */
export const retryRows: readonly Row[] = [
  {
    method: 'GET',
    path: `/runs/{run}/artifacts/${'0'.repeat(64)}`,
    scope: 'runs:read',
    resource: 'run',
    queries: [['after=x', 'after']],
  },
  {
    method: 'POST',
    path: '/runs/{run}/retry',
    scope: 'tasks:write',
    resource: 'run',
    body: { step: 'one' },
    faults: [
      ['step', ''],
      ['step', 7],
      ['step', 'no step of it'],
      ['params', 'x'],
    ],
    queries: [
      ['from=middle', 'from'],
      ['from=', 'from'],
    ],
  },
  {
    method: 'POST',
    path: '/runs/redrive',
    scope: 'tasks:write',
    body: { task_id: newId(0), dry_run: true },
    faults: [
      ['task_id', 'x'],
      ['created_by', 'me'],
      ['start_time', 'yesterday'],
      ['start_time', '2026-01-01T00:00:00'],
      ['end_time', '2026-13-01T00:00:00Z'],
      ['error', ''],
      ['error', 'x'.repeat(501)],
      ['from', 'middle'],
      ['limit', 0],
      ['limit', 1001],
      ['limit', '5'],
      ['cursor', 'nonsense'],
      ['dry_run', 'yes'],
      ['state', 'failed'],
      ...selections,
    ],
    queries: [
      ['dry_run=maybe', 'dry_run'],
      ['after=nowhere', 'after'],
    ],
  },
  {
    method: 'POST',
    path: '/runs/cancel',
    scope: 'tasks:write',
    body: { task_id: newId(0), dry_run: true },
    faults: [
      ['task_id', 'x'],
      ['created_by', 'me'],
      ['start_time', 'yesterday'],
      ['error', ''],
      ['state', 'failed'],
      ['limit', 1001],
      ['cursor', 'nonsense'],
      ['dry_run', 'yes'],
      ['from', 'start'],
      ...selections,
    ],
    queries: [
      ['dry_run=maybe', 'dry_run'],
      ['after=nowhere', 'after'],
    ],
  },
];
