import type { Command } from 'commander';
import { flag, text, wholeNumber, type DeclaredOptions, type OptionValues } from '../options.ts';
import type { CommandLine } from '../program.ts';
import type { Client, QueryValue } from './client.ts';
import type { Listed } from './records.ts';
import type { RecordColumn, Session } from './session.ts';

/** Most items that the service returns in one page. */
const MAX_PAGE = 200;

/** Items in a page by default. */
const USUAL_PAGE = 50;

/** The part of a list to read. */
export interface Paging {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly all?: boolean | undefined;
}

/** The options of a list. @param usual items in a page by default */
export const paging = (usual = USUAL_PAGE) => ({
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
  // A page of a search ends after some time, even if it is not full.
  const wanted = page.total === null ? (limit ?? USUAL_PAGE) : 0;
  const items = [...page.items];
  while (page.next_cursor !== null && (all || items.length < wanted)) {
    const rest = all ? first.limit : wanted - items.length;
    const next = { ...first, limit: rest, cursor: page.next_cursor };
    page = await client.get<Listed<T>>(path, { query: next });
    items.push(...page.items);
  }
  return { ...page, items, ...(all ? { has_more: false } : {}) };
}

/** A line under an incomplete list: how many items there are, and how to read the rest. */
export function continuationHint(
  { paint }: Session,
  { items, total, next_cursor }: Listed<unknown>,
  noun: string,
): string {
  if (next_cursor === null) return '';
  const count =
    typeof total === 'number' ? `${items.length} of ${total.toLocaleString('en')} ${noun}; ` : '';
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
