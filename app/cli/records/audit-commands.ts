import { auditOutcomes } from '../../../domain/vocabulary.ts';
import { usageError } from '../calling/command-errors.ts';
import { continuationHint, paging, readList } from '../calling/lists.ts';
import { liveMessages } from '../calling/live-stream.ts';
import type { Session } from '../calling/session.ts';
import { choice, flag, text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { printable } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';

interface AuditItem {
  readonly at: string;
  readonly actor: string;
  readonly actor_name: string | null;
  readonly source: string;
  readonly action: string;
  readonly stream: string;
  readonly task_title: string | null;
  readonly subject?: string | null;
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

/** `svc audit` */
export function addAuditCommand(line: CommandLine): void {
  line.add(line.program, 'audit', {
    description: 'show who did what, and what was rejected, newest first (scope audit:read)',
    options: {
      actor: text('agent', "an agent's actions; `service` for the service's own"),
      stream: text('name', 'actions on a stream: task-<id>, agent-<id>, …'),
      type: text('type', 'an event type, such as TaskPaused or CommandRefused'),
      source: text('address', 'actions from an address'),
      request: text('id', 'actions of a request, by its X-Request-Id'),
      outcome: choice('outcome', 'actions with this outcome', auditOutcomes),
      search: text('text', 'text in the action, reason, agent or task'),
      since: text('instant', 'at or after'),
      until: text('instant', 'at or before'),
      follow: flag('follow new actions'),
      ...paging(),
    },
    examples: [
      'audit --type CommandRefused --since 2026-11-20T00:00Z',
      'audit --stream task-01a1fc11-0505-734a-8920-9c4c55a40f65',
      'audit --outcome refused --search "Nightly report"',
      'audit --follow --json',
    ],
    run: async (session, options) => {
      const { since, until, limit, cursor, all, follow = false, request, ...filters } = options;
      const query = { ...filters, correlation_id: request };
      if (follow) {
        const given = Object.entries({ since, until, limit, cursor, all })
          .filter(([, value]) => value !== undefined)
          .map(([name]) => `--${name}`);
        if (given.length > 0) throw usageError(`${given.join(', ')} cannot be used with --follow`);
        await session.following(async () => {
          for await (const message of liveMessages(session, '/audit/live', query)) {
            if (message === null || !message.event.startsWith('audit.')) continue;
            const item = JSON.parse(message.data) as AuditItem;
            session.item(item, () => lineOf(session, item));
          }
        });
        return;
      }
      const window = { ...query, from: since, to: until };
      const page = await readList<AuditItem>(session.client, '/audit', window, options);
      session.answer(page, () => {
        const table = session.table<AuditItem>(
          [
            { title: 'WHEN', cell: ({ at }) => shortTime(at) },
            { title: 'BY', cell: ({ actor, actor_name }) => actor_name ?? actor },
            { title: 'FROM', cell: ({ source }) => source },
            { title: 'ACTION', cell: actionOf, paint: (cell) => paintAction(session, cell) },
            { title: 'ABOUT', cell: aboutOf },
            { title: 'WHERE', cell: (item) => placeOf(item, `@${item.revision}`) },
            { title: 'REASON', cell: ({ reason }) => reason },
          ],
          page.items,
          'no actions',
        );
        return table + continuationHint(session, page, 'actions');
      });
    },
  });
}

function lineOf(session: Session, item: AuditItem): string {
  const { paint } = session;
  const about = aboutOf(item);
  const named = about === null ? '' : ` (${about})`;
  const why = item.reason === null ? '' : `: ${item.reason}`;
  const by = `by ${item.actor_name ?? item.actor} from ${item.source}`;
  const rest = printable(`${by} ${placeOf(item)}${named}${why}`);
  return `${paint.faint(shortTime(item.at))} ${paintAction(session, actionOf(item))} ${rest}`;
}

/** The task of an entry, or else the name of its subject. Older releases of the service do not return that name. */
const aboutOf = ({ task_title, subject }: AuditItem): string | null =>
  task_title ?? subject ?? null;

/** The stream, or the path of a rejected request. @param revision appended to the stream */
const placeOf = ({ refusal, stream }: AuditItem, revision = ''): string =>
  refusal === null ? stream + revision : (refusal.path ?? '');

/** The action, with the outcome and count of calls and rejections. */
function actionOf({ action, outcome, refusal, call }: AuditItem): string {
  const times = (count: number): string => (count > 1 ? `, ${count} times` : '');
  if (call !== null) {
    return outcome === 'done'
      ? `${action}${times(call.count)}`
      : `${outcome} ${action} (${call.code}${times(call.count)})`;
  }
  if (refusal === null) return action;
  return `refused ${action} (${refusal.status} ${refusal.code}${times(refusal.count)})`;
}

const paintAction = ({ paint }: Session, text: string): string =>
  /^(refused|failed) /.test(text) ? paint.bad(text) : text;
