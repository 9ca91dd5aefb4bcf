import { Type, type Static } from '@sinclair/typebox';
import { toIso } from '../../../domain/clock.ts';
import { toNewEvents } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import type { Moment } from '../../../projections/reading/as-of.ts';
import type { Call } from '../../endpoint.ts';
import { badRequest, forbidden } from '../../errors.ts';
import { checkPosition } from '../../positions.ts';
import { instantOfTask } from './instant.ts';
import { pageParameters } from '../listing.ts';

/** What lets one look at the past, at streams and at the audit. */
export const auditScope = 'audit:read';

type Reader = Pick<Call<unknown, object>, 'caller' | 'context' | 'dependencies' | 'parameters'> & {
  readonly query: object;
};

/**
 * Records that somebody looks at the audit or at the past, where the settings ask for that. Durable before the
 * answer: what could not be recorded is not shown.
 *
 * @param action as the interface's description writes it: `GET /audit`
 * @throws EventStoreError what the log throws
 */
export async function recordReading(call: Reader, action: string): Promise<void> {
  const { caller, context, dependencies, parameters, query } = call;
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
 * Refuses whoever asks for the past without being allowed to.
 * @param parameter by which it is asked for
 * @throws HttpError 403 without the scope `audit:read`
 */
export function checkMayLookBack({ caller }: Pick<Reader, 'caller'>, parameter: string): void {
  if (caller === null || caller.admin || caller.scopes.includes(auditScope)) return;
  throw forbidden(`${parameter} needs the scope ${auditScope}`, [auditScope], caller.scopes);
}

/** For reads of one thing that was otherwise before. */
export const PastQuery = Type.Object({
  after: pageParameters.after,
  as_of: Type.Optional(
    Type.String({
      maxLength: 64,
      description:
        'an instant (ISO 8601; of a task, without an offset in its zone, and a date alone is the end of that day), ' +
        'or a position of the log',
    }),
  ),
});
export type PastQuery = Static<typeof PastQuery>;

/**
 * The moment that a read asks for by `as_of`; null where it asks for the present.
 * @param zoneOf see {@link momentOf}
 * @throws HttpError 403 without the scope `audit:read`, 400 for what is neither an instant nor a position
 */
export async function momentAsked(
  call: Reader & { readonly query: { readonly as_of?: string } },
  action: string,
  zoneOf?: () => Promise<string | null>,
): Promise<Moment | null> {
  const { dependencies, query } = call;
  const text = query.as_of;
  if (text === undefined) return null;
  checkMayLookBack(call, 'as_of');
  const moment = await momentOf(text, dependencies, 'as_of', zoneOf);
  await recordReading(call, action);
  return moment;
}

/**
 * The moment that a text means.
 * @param field as the caller knows it
 * @param zoneOf the zone of an instant that names no offset; default: it must name one
 * @throws HttpError 400 for what is neither an instant nor a position of the log
 */
export async function momentOf(
  text: string,
  { store }: Pick<Call['dependencies'], 'store'>,
  field: string,
  zoneOf: () => Promise<string | null> = () => Promise.resolve(null),
): Promise<Moment> {
  // Of no engine is it shorter, nor is an instant written like that.
  if (/^[0-9a-f]{16,}$/.test(text)) {
    await checkPosition(store, field, text);
    return { kind: 'position', position: text };
  }
  if (/^\d{1,15}$/.test(text)) {
    const issue =
      'is no instant; a position is given with all its digits, as X-Event-Position has it';
    throw badRequest([{ field, issue }]);
  }
  // All that was done that day had been done: a date alone is its end.
  const at = await instantOfTask(field, text, zoneOf, 'last');
  if (at === undefined) throw badRequest([{ field, issue: 'is required' }]);
  return { kind: 'instant', at };
}
