import type { Command } from 'commander';
import { continuationHint, paging, readList } from '../calling/lists.ts';
import type { Listed } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import type { CommandLine } from '../program.ts';
import { printable } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import { pathSegment } from '../terminal/values.ts';

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

/** Most characters of a value in a line. */
const MAX_VALUE_LENGTH = 60;

/** `svc tasks history`, `svc runs history`, `svc agents history` */
export function addHistory(
  line: CommandLine,
  group: Command,
  kind: 'tasks' | 'runs' | 'agents',
): void {
  line.add(group, 'history <id>', {
    description: 'show who changed it and what changed, oldest first',
    options: paging(),
    examples: [`${kind} history 01a1fc11-…`],
    run: async (session, options, [id]) => {
      const path = `/${kind}/${pathSegment(id)}/history`;
      const { items, next_cursor } = await readList<HistoryItem>(session.client, path, {}, options);
      const answer: Listed<HistoryItem> = { items, next_cursor };
      session.answer(answer, () => {
        const shown = items.map((item) => showItem(session, item)).join('\n');
        return shown + continuationHint(session, answer, 'changes');
      });
    },
  });
}

function showItem({ paint }: Session, item: HistoryItem): string {
  const { revision, at, actor, actor_name, type, reason, changes } = item;
  const why = printable(reason === null ? '' : `: ${reason}`);
  const head = `${paint.faint(`${revision}  ${shortTime(at)}`)}  ${paint.strong(type)} by ${actor_name ?? actor}${why}`;
  const lines = changes.map(
    ({ path, before, after }) =>
      `   ${printable(path)}: ${paint.bad(inline(before))} → ${paint.good(inline(after))}`,
  );
  return [head, ...lines].join('\n');
}

/** A value on one line, shortened; `–` for none. */
function inline(value: unknown): string {
  if (value === null) return '–';
  const json = JSON.stringify(value);
  return printable(
    json.length > MAX_VALUE_LENGTH ? `${json.slice(0, MAX_VALUE_LENGTH - 1)}…` : json,
  );
}
