import { toIso } from '../../domain/clock.ts';
import type { ListedIds } from './http-lists-store.ts';

/** A requested list. */
export interface List {
  readonly path: string;
  /** Whether its total is counted on an index or known. */
  readonly covered: boolean;
}

/** Every list: all filters and all their combinations that do not contradict each other. */
export function everyList(ids: ListedIds): readonly List[] {
  return [...taskLists(ids), ...runLists(ids), ...otherLists(ids)];
}

function taskLists({ agent }: ListedIds): readonly List[] {
  const filters: readonly (readonly string[])[] = [
    ['', 'status=active', 'status=paused', 'status=canceled'],
    ['', `created_by=${agent}`],
    ['', 'schedule_kind=cron', 'schedule_kind=event', 'schedule_kind=once'],
    ['', 'tag=common', 'tag=rare'],
    ['', 'search=REPORT', 'search=needle', 'search=nowhere'],
  ];
  return combined(filters).map((parts) => ({
    path: pathOf('/tasks', parts),
    covered: parts.every((part) => /^(?:status|created_by|schedule_kind)/.test(part)),
  }));
}

function runLists({ busyTask, task, since, until }: ListedIds): readonly List[] {
  const at = (share: number): string => toIso(Math.floor(since + (until - since) * share));
  const filters: readonly (readonly string[])[] = [
    ['', `task_id=${busyTask}`, `task_id=${task}`],
    ['', 'success=true', 'success=false'],
    ['', ...['succeeded', 'canceled', 'queued', 'skipped'].map((state) => `state=${state}`)],
    ['', 'trigger=schedule', 'trigger=manual', 'trigger=backfill'],
    [
      '',
      `start_time=${at(0.1)}`,
      `end_time=${at(0.9)}`,
      `start_time=${at(0.001)}&end_time=${at(0.999)}`,
      `start_time=${at(0.5)}&end_time=${at(0.51)}`,
    ],
  ];
  return combined(filters)
    .filter((parts) => {
      const isOf = (name: string): boolean => parts.some((part) => part.startsWith(name));
      return !isOf('state=') || !isOf('success=') || isOf('success=true&state=succeeded');
    })
    .map((parts) => ({
      path: pathOf('/runs', parts),
      covered: parts.every((part) => /^(?:task_id|success|state|trigger|start_|end_)/.test(part)),
    }));
}

/** Agents, the audit and streams. */
function otherLists({ agent, task, since, until }: ListedIds): readonly List[] {
  const at = (share: number): string => toIso(Math.floor(since + (until - since) * share));
  const agents = combined([
    ['', 'name_filter=agent%2099', 'name_filter=nobody'],
    ['', 'scope_filter=admin', 'scope_filter=none'],
  ]).map((parts) => pathOf('/agents', parts));
  const audit = combined([
    ['', `actor=${agent}`, `actor=${task}`],
    ['', `stream=task-${task}`],
    ['', 'type=RunRequested', 'type=TaskCanceled', 'type=AgentRemoved'],
    ['', `from=${at(0.1)}`, `from=${at(0.5)}&to=${at(0.51)}`],
  ]).map((parts) => pathOf('/audit', parts));
  const streams = ['/streams', '/streams?prefix=task-', `/streams/task-${task}`];
  const due = ['/tasks/due', '/topics'];
  return [...agents, ...audit, ...streams, ...due].map((path) => ({ path, covered: false }));
}

/** Lists that are read to page 1,000. @param limit items in a page */
export const deepLists = ({ agent, since }: ListedIds, limit: number): readonly string[] =>
  [
    '/runs?',
    '/runs?state=succeeded&',
    '/runs?trigger=schedule&',
    `/runs?start_time=${toIso(since)}&`,
    '/tasks?',
    '/tasks?status=active&',
    `/tasks?created_by=${agent}&`,
  ].map((path) => `${path}limit=${String(limit)}`);

export const statisticsOf = ({ busyTask }: ListedIds): readonly string[] => [
  '/stats/summary',
  '/stats/summary?days=365',
  `/task/${busyTask}/stats`,
  `/task/${busyTask}/stats?days=365`,
];

function combined(filters: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return filters.reduce<readonly (readonly string[])[]>(
    (made, values) =>
      made.flatMap((parts) => values.map((value) => (value === '' ? parts : [...parts, value]))),
    [[]],
  );
}

function pathOf(path: string, parts: readonly string[]): string {
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
}
