import type { Command } from 'commander';
import type { Paging } from '../calling/listing.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';
import { shortTime } from '../terminal/times.ts';
import { part, wholeNumberOf } from '../terminal/values.ts';

/** The kinds of records that have a history. */
export type RecordKind = 'tasks' | 'runs' | 'agents';

export interface AsOf {
  readonly asOf?: string;
}

/** Lets a command show a record as it was. */
export function addAsOf(command: Command): void {
  command.option('--as-of <moment>', 'as it was at an instant, or a position of the log');
}

interface HistoryItem {
  readonly revision: number;
  readonly at: string;
  readonly actor: string;
  readonly actor_name: string | null;
  readonly type: string;
  readonly reason: string | null;
  readonly changes: readonly {
    readonly path: string;
    readonly before: unknown;
    readonly after: unknown;
  }[];
}

interface History {
  readonly items: readonly HistoryItem[];
  readonly next_cursor: string | null;
}

/** Characters of a value in a line. */
const MOST = 60;
const PAGE = 200;

/** `svc tasks history`, `svc runs history`, `svc agents history` */
export function addHistory(line: CommandLine, group: Command, kind: RecordKind): void {
  const history = group
    .command('history <id>')
    .description('what was done to it, by whom, and what that changed; oldest first')
    .option('--limit <n>', 'how many, 1 to 200 (50)', wholeNumberOf(1, PAGE))
    .option('--cursor <cursor>', 'goes on where a list ended')
    .option('--all', 'the whole history');
  line.does<Paging>(history, [`${kind} history 01a1fc11-…`], async (session, options, [id]) => {
    const answer = await readHistory(session, `/${kind}/${part(id)}/history`, options);
    session.answer(answer, () => {
      const shown = answer.items.map((item) => showItem(session, item)).join('\n');
      const more = answer.next_cursor;
      const hint = more === null ? '' : `\ngo on with --cursor ${more}, or take --all`;
      return shown + session.paint.faint(hint);
    });
  });
}

async function readHistory(
  { client }: Session,
  path: string,
  { limit, cursor, all = false }: Paging,
): Promise<History> {
  const first = { limit: limit ?? (all ? PAGE : undefined), cursor };
  let page = await client.get<History>(path, { query: first });
  const items = [...page.items];
  while (all && page.next_cursor !== null) {
    page = await client.get<History>(path, { query: { ...first, cursor: page.next_cursor } });
    items.push(...page.items);
  }
  return { items, next_cursor: page.next_cursor };
}

function showItem(session: Session, item: HistoryItem): string {
  const { paint } = session;
  const { revision, at, actor, actor_name, type, reason, changes } = item;
  const why = printable(reason === null ? '' : `: ${reason}`);
  const head = `${paint.faint(`${revision}  ${shortTime(at)}`)}  ${paint.strong(type)} by ${actor_name ?? actor}${why}`;
  const lines = changes.map(
    ({ path, before, after }) =>
      `   ${printable(path)}: ${paint.bad(written(before))} → ${paint.good(written(after))}`,
  );
  return [head, ...lines].join('\n');
}

/** A value on one line, cut where it is long; `–` where there is none. */
function written(value: unknown): string {
  if (value === null) return '–';
  const text = JSON.stringify(value);
  return printable(text.length > MOST ? `${text.slice(0, MOST - 1)}…` : text);
}
