import {
  agentHistory,
  runHistory,
  taskHistory,
  type HistoryPage,
  type HistorySpan,
} from '../../../projections/reading/history.ts';
import { History } from '../../schemas/response-schemas-audit.ts';
import { EVERY_NAMESPACE } from '../../../projections/reach.ts';
import { streamNamespacesIn } from './streams-in-reach.ts';
import { namesIn } from './audit-naming.ts';
import { auditScope, recordReading } from './audit-access.ts';
import { HistoryQuery } from '../../schemas/audit-schemas.ts';
import { endpoint, idIn, type Call, type Endpoint } from '../../endpoint.ts';
import { notFound } from '../../errors.ts';
import { invalidCursor } from '../listing.ts';
import { showRun } from '../runs/run-records.ts';

/** Reads a page of a record's history. */
type Read = (
  dependencies: Call['dependencies'],
  id: string,
  span: HistorySpan,
) => Promise<HistoryPage | null>;

const tasks = historyEndpoint('getTaskHistory', 'task', '/tasks/:id', ({ store }, id, span) =>
  taskHistory(store, id, span),
);
const runs = historyEndpoint('getRunHistory', 'run', '/runs/:run_id', (dependencies, id, span) =>
  runHistory(dependencies.store, id, span, (run) => showRun(dependencies, run)),
);
const agents = historyEndpoint(
  'getAgentHistory',
  'agent',
  '/agents/:agent_id',
  ({ store }, id, span) => agentHistory(store, id, span),
);

export const historyEndpoints: readonly Endpoint[] = [tasks, runs, agents];

function historyEndpoint(
  operationId: string,
  kind: string,
  path: `/${string}`,
  read: Read,
): Endpoint {
  const parameter = path.slice(path.indexOf(':') + 1);
  return endpoint(`GET ${path}/history`, {
    operationId,
    summary: `Lists the events of ${kind === 'agent' ? 'an' : 'a'} ${kind} with their authors and changes, oldest first`,
    scopes: [auditScope],
    query: HistoryQuery,
    hasLargeResponse: true,
    responses: { 200: History },
    async handle(call) {
      const id = idIn(call, parameter);
      const from = revisionOf(call.query.cursor);
      await recordReading(call);
      if (call.reach !== EVERY_NAMESPACE) {
        const namespace = await streamNamespacesIn(call.dependencies).of(`${kind}-${id}`);
        if (namespace !== call.reach) throw notFound(kind, id);
      }
      const page = await read(call.dependencies, id, { from, limit: call.query.limit });
      if (page === null) throw notFound(kind, id);
      const next_cursor = page.next === null ? null : String(page.next);
      const names = namesIn(call);
      const items = await Promise.all(
        page.items.map(async ({ revision, at, actor, ...rest }) => {
          return { revision, at, actor, actor_name: await names.agentName(actor), ...rest };
        }),
      );
      return { body: { items, next_cursor } };
    },
  });
}

/** @throws HttpError 400 for an invalid cursor */
function revisionOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw invalidCursor();
}
