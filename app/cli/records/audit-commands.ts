import { Option } from 'commander';
import { auditOutcomes } from '../../../domain/vocabulary.ts';
import type { QueryValue } from '../calling/client.ts';
import { usageFault } from '../calling/faults.ts';
import { addPaging, listAll, type Paging } from '../calling/listing.ts';
import { liveMessages } from '../calling/live.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';
import { addStreamCommands } from './stream-commands.ts';
import { shortTime } from '../terminal/times.ts';

interface AuditItem {
  readonly at: string;
  readonly actor: string;
  readonly actor_name: string | null;
  readonly source: string;
  readonly action: string;
  readonly stream: string;
  readonly task_title: string | null;
  readonly revision: number;
  readonly reason: string | null;
  readonly outcome: string;
  readonly call: { readonly code: string | null; readonly count: number } | null;
  readonly refusal: {
    readonly status: number;
    readonly code: string;
    readonly path: string | null;
    readonly count: number;
  } | null;
}

interface AuditOptions extends Paging {
  readonly actor?: string;
  readonly stream?: string;
  readonly type?: string;
  readonly source?: string;
  readonly request?: string;
  readonly outcome?: string;
  readonly search?: string;
  readonly since?: string;
  readonly until?: string;
  readonly follow?: boolean;
}

/** `svc audit`, `svc streams …` */
export function addAuditCommands(line: CommandLine): void {
  const audit = line.program
    .command('audit')
    .description('who did what, and what was refused, newest first (scope audit:read)')
    .option('--actor <agent>', 'what one did; `service`: what was done by itself')
    .option('--stream <name>', 'what was done to one: task-<id>, agent-<id>, …')
    .option('--type <type>', 'of the event, such as TaskPaused, CommandRefused')
    .option('--source <address>', 'what came from one address')
    .option('--request <id>', 'what came of one request: its X-Request-Id')
    .addOption(new Option('--outcome <outcome>', 'what came of it').choices(auditOutcomes))
    .option('--search <text>', 'in what was done, why, by whom and to which task')
    .option('--since <instant>', 'at or after')
    .option('--until <instant>', 'at or before')
    .option('--follow', 'what is done from now on, as it happens');
  addPaging(audit);
  const examples = [
    'audit --type CommandRefused --since 2026-11-20T00:00Z',
    'audit --stream task-01a1fc11-0505-734a-8920-9c4c55a40f65',
    'audit --outcome refused --search "Nightly report"',
    'audit --follow --json',
  ];
  line.does<AuditOptions>(audit, examples, async (session, options) => {
    const { since, until, follow = false } = options;
    const { actor, stream, type, source, request, outcome, search } = options;
    const looked = { actor, stream, type, source, correlation_id: request, outcome, search };
    if (follow) {
      requireNone(options);
      return session.following(() => followAudit(session, looked));
    }
    const query = { ...looked, from: since, to: until };
    const page = await listAll<AuditItem>(session.client, '/audit', query, options);
    session.answer(page, () => {
      const rows = page.items.map((item) => [
        shortTime(item.at),
        item.actor_name ?? item.actor,
        item.source,
        whatOf(item),
        item.task_title,
        whereOf(item, `@${item.revision}`),
        item.reason,
      ]);
      const titles = ['WHEN', 'BY', 'FROM', 'WHAT', 'TASK', 'WHERE', 'BECAUSE'];
      const columns = titles.map((title) =>
        title === 'WHAT' ? { title, paint: (text: string) => painted(session, text) } : { title },
      );
      const more = page.next_cursor;
      const hint = more === null ? '' : `\ngo on with --cursor ${more}, or take --all`;
      return session.table(columns, rows, 'nothing') + session.paint.faint(hint);
    });
  });
  addStreamCommands(line);
}

/** What has been done is not followed. @throws CommandFault where something says how much of that is wanted */
function requireNone(options: AuditOptions): void {
  const given = (['since', 'until', 'limit', 'cursor', 'all'] as const).filter(
    (name) => options[name] !== undefined,
  );
  if (given.length > 0) throw usageFault(`--${given.join(', --')} goes without --follow`);
}

/** Tells of each thing that is done, a line each, until it is interrupted. */
async function followAudit(
  session: Session,
  query: Readonly<Record<string, QueryValue>>,
): Promise<void> {
  for await (const message of liveMessages(session, '/audit/live', query)) {
    if (message === null || !message.event.startsWith('audit.')) continue;
    const item = JSON.parse(message.data) as AuditItem;
    if (session.json) session.jsonLine(item);
    else session.line(lineOf(session, item));
  }
}

function lineOf(session: Session, item: AuditItem): string {
  const { paint } = session;
  const task = item.task_title === null ? '' : ` (${item.task_title})`;
  const where = `${whereOf(item)}${task}`;
  const why = item.reason === null ? '' : `: ${item.reason}`;
  const what = painted(session, whatOf(item));
  const rest = printable(`by ${item.actor_name ?? item.actor} from ${item.source} ${where}${why}`);
  return `${paint.faint(shortTime(item.at))} ${what} ${rest}`;
}

/** @param revision stands behind the stream */
const whereOf = ({ refusal, stream }: AuditItem, revision = ''): string =>
  refusal === null ? stream + revision : (refusal.path ?? '');

/** What was done; of what was refused how, and how often. */
function whatOf({ action, outcome, refusal, call }: AuditItem): string {
  if (call !== null) {
    const often = call.count > 1 ? `, ${call.count} times` : '';
    return outcome === 'done' ? `${action}${often}` : `${outcome} ${action} (${call.code}${often})`;
  }
  if (refusal === null) return action;
  const often = refusal.count > 1 ? `, ${refusal.count} times` : '';
  return `refused ${action} (${refusal.status} ${refusal.code}${often})`;
}

const painted = ({ paint }: Session, text: string): string =>
  /^(refused|failed) /.test(text) ? paint.bad(text) : text;
