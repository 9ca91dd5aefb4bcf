import type { Command } from 'commander';
import { flag, text, wholeNumber, type DeclaredOptions, type OptionValues } from '../options.ts';
import type { CommandLine } from '../program.ts';
import type { Client, QueryValue } from './client.ts';
import type { Listed } from './records.ts';
import type { RecordColumn, Session } from './session.ts';

/** Most items that the service returns in one page. */
const MAX_PAGE = 200;

/** The part of a list to read. */
export interface Paging {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly all?: boolean | undefined;
}

/** The options of a list. @param usual items in a page by default */
export const paging = (usual = 50) => ({
  limit: wholeNumber('n', `number of items, 1-200 (default: ${usual})`, 1, MAX_PAGE),
  cursor: text('cursor', 'continue a list where it ended'),
  all: flag('read the whole list'),
});

/** Reads a page of a list, or the whole list. */
export async function readList<T>(
  client: Client,
  path: string,
  query: Readonly<Record<string, QueryValue>>,
  { limit, cursor, all = false }: Paging = {},
): Promise<Listed<T>> {
  const first = { ...query, limit: limit ?? (all ? MAX_PAGE : undefined), cursor };
  let page = await client.get<Listed<T>>(path, { query: first });
  if (!all) return page;
  const items = [...page.items];
  while (page.next_cursor !== null) {
    page = await client.get<Listed<T>>(path, { query: { ...first, cursor: page.next_cursor } });
    items.push(...page.items);
  }
  return { ...page, items, has_more: false };
}

/** A line under an incomplete list: how many items there are, and how to read the rest. */
export function continuationHint(
  { paint }: Session,
  { items, total, next_cursor }: Listed<unknown>,
  noun: string,
): string {
  if (next_cursor === null) return '';
  const count =
    total === undefined ? '' : `${items.length} of ${total.toLocaleString('en')} ${noun}; `;
  return `\n${paint.faint(`${count}continue with --cursor ${next_cursor}, or use --all`)}`;
}

/** Declares a command that prints a list of the interface as a table. */
interface ListSpec<T, S extends DeclaredOptions> {
  readonly description: string;
  readonly options?: S;
  readonly examples: readonly string[];
  readonly path: (args: readonly string[], session: Session) => string | Promise<string>;
  readonly query?: (
    options: OptionValues<S>,
    args: readonly string[],
  ) => Readonly<Record<string, QueryValue>>;
  readonly columns: (session: Session, options: OptionValues<S>) => readonly RecordColumn<T>[];
  /** The items, in the plural. */
  readonly noun: string;
  /** Printed if there are none. */
  readonly none?: string;
}

/** Adds a command that prints a list. */
export function addList<T, S extends DeclaredOptions>(
  line: CommandLine,
  group: Command,
  usage: string,
  { description, options, examples, path, query, columns, noun, none }: ListSpec<T, S>,
): Command {
  return line.add(group, usage, {
    description,
    options: { ...options, ...paging() },
    examples,
    run: async (session, given, args) => {
      const values = given as unknown as OptionValues<S> & Paging;
      const where = await path(args, session);
      const page = await readList<T>(session.client, where, query?.(values, args) ?? {}, values);
      session.answer(page, () => {
        const table = session.table(columns(session, values), page.items, none ?? `no ${noun}`);
        return table + continuationHint(session, page, noun);
      });
    },
  });
}
