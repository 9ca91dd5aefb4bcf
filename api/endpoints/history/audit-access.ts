import { Type, type Static } from '@sinclair/typebox';
import { toIso } from '../../../domain/clock.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import type { PointInTime } from '../../../projections/reading/as-of.ts';
import type { Call } from '../../endpoint.ts';
import { badRequest, forbidden } from '../../errors.ts';
import { checkPosition } from '../../positions.ts';
import { instantOfTask } from './instant.ts';
import { pageParameters } from '../listing.ts';

/** Scope for the past, the streams and the audit. */
export const auditScope = 'audit:read';

type Reader = Pick<Call, 'action' | 'caller' | 'context' | 'dependencies' | 'parameters'> & {
  readonly query: object;
};

/**
 * Records a read of the audit or of the past, if the settings ask for that. The record is durable before the response
 * is sent, so no read is shown without a record.
 */
export async function recordReading(call: Reader): Promise<void> {
  const { action, caller, context, dependencies, parameters, query } = call;
  const { settings, store, clock } = dependencies;
  if (!settings.auditReads || caller === null) return;
  const asked: Record<string, string> = { ...parameters };
  for (const [name, value] of Object.entries(query)) asked[name] = String(value);
  const data = { agent_id: caller.agentId, action, asked };
  const stream = streams.auditReads(caller.agentId, toIso(context.now).slice(0, 10));
  const own = { ...context, commandId: newId(clock.now()) };
  await store.append(stream, toNewEvents(stream, [{ type: 'AuditRead', data }], own), 'any');
}

/**
 * @param parameter the name of the query parameter that asks for the past
 * @throws HttpError 403 without the scope `audit:read`
 */
export function requireAuditScope({ caller }: Pick<Reader, 'caller'>, parameter: string): void {
  if (caller === null || caller.admin || caller.scopes.includes(auditScope)) return;
  throw forbidden(`${parameter} needs the scope ${auditScope}`, [auditScope], caller.scopes);
}

/** Query of a resource that may be read in a past state. */
export const PastQuery = Type.Object({
  after: pageParameters.after,
  as_of: Type.Optional(
    Type.String({
      maxLength: 64,
      description:
        'an instant in ISO 8601 (for a task, a time without an offset is in its zone, and a date means the end of that day), ' +
        'or a position of the log',
    }),
  ),
});
export type PastQuery = Static<typeof PastQuery>;

/**
 * The instant or position that `as_of` asks for; null for the present.
 * @param zoneOf see {@link parsePointInTime}
 * @throws HttpError 403 without the scope `audit:read`, 400 for a value that is neither an instant nor a position
 */
export async function pastAskedFor(
  call: Reader & { readonly query: { readonly as_of?: string } },
  zoneOf?: () => Promise<string | null>,
): Promise<PointInTime | null> {
  const { dependencies, query } = call;
  if (query.as_of === undefined) return null;
  requireAuditScope(call, 'as_of');
  const past = await parsePointInTime('as_of', query.as_of, dependencies, zoneOf);
  await recordReading(call);
  return past;
}

/**
 * Parses an instant or a position of the log.
 * @param zoneOf the time zone of an instant without an offset; default: it must have one
 * @throws HttpError 400 for any other string
 */
export async function parsePointInTime(
  field: string,
  given: string,
  { store }: Pick<Call['dependencies'], 'store'>,
  zoneOf: () => Promise<string | null> = () => Promise.resolve(null),
): Promise<PointInTime> {
  // All engines have positions of at least this length.
  if (/^[0-9a-f]{16,}$/.test(given)) {
    await checkPosition(store, field, given);
    return { kind: 'position', position: given };
  }
  if (/^\d{1,15}$/.test(given)) {
    const issue = 'is not an instant; a position must have all its digits, as in X-Event-Position';
    throw badRequest([{ field, issue }]);
  }
  // A date alone means the end of that day.
  const at = await instantOfTask(field, given, zoneOf, 'last');
  if (at === undefined) throw badRequest([{ field, issue: 'is required' }]);
  return { kind: 'instant', at };
}
