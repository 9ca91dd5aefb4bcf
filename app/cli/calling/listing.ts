import type { Command } from 'commander';
import type { Client, QueryValue } from './client.ts';
import type { Listed } from './records.ts';
import type { Session } from './session.ts';
import { wholeNumberOf } from '../terminal/values.ts';

/** How much of a list is wanted. */
export interface Paging {
  readonly limit?: number;
  readonly cursor?: string;
  readonly all?: boolean;
}

/** Most that the service gives at once. */
const PAGE = 200;

/** @param otherwise how many the service gives where nothing is said */
export function addPaging(command: Command, otherwise = 50): Command {
  return command
    .option('--limit <n>', `how many, 1 to 200 (${otherwise})`, wholeNumberOf(1, PAGE))
    .option('--cursor <cursor>', 'goes on where a list ended')
    .option('--all', 'the whole list');
}

/** A page of a list, or the whole of it. */
export async function listAll<T>(
  client: Client,
  path: string,
  query: Readonly<Record<string, QueryValue>>,
  { limit, cursor, all = false }: Paging = {},
): Promise<Listed<T>> {
  const first = { ...query, limit: limit ?? (all ? PAGE : undefined), cursor };
  const page = await client.get<Listed<T>>(path, { query: first });
  if (!all) return page;
  const items = [...page.items];
  let last = page;
  while (last.next_cursor !== null) {
    const next = { ...first, cursor: last.next_cursor };
    last = await client.get<Listed<T>>(path, { query: next });
    items.push(...last.items);
  }
  return { ...page, items, has_more: false, next_cursor: null };
}

/** A line under a list that is not the whole: how much there is, and how to go on. */
export function shownOf(
  session: Session,
  page: Pick<Listed<unknown>, 'items' | 'total' | 'next_cursor'>,
  what: string,
): string {
  if (page.next_cursor === null) return '';
  const of = `${page.items.length} of ${page.total.toLocaleString('en')} ${what}; `;
  return `\n${session.paint.faint(`${of}go on with --cursor ${page.next_cursor}, or take --all`)}`;
}
