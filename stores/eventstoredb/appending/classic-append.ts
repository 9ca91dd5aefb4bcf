import { jsonEvent, type AppendResult as Answer, type JSONType } from '@eventstore/db-client';
import type { EncodedEvent, ExpectedRevision } from '../../../domain/event-store.ts';
import { withTimeout } from '../../waiting.ts';
import type { Connection } from '../connecting/connection.ts';
import type { Append } from './batch-request.ts';

/** How much longer than its deadline a call is awaited, in case the client never settles it. */
const GRACE_MS = 500;

/**
 * Appends with a separate call of the client, which every server supports.
 * @param deadline milliseconds
 * @throws the client's error
 */
export async function classicAppend(
  connection: Connection,
  { stream, events, expected }: Append,
  deadline: number,
): Promise<Answer> {
  const call = connection.appendToStream(stream, events.map(toClientEvent), {
    expectedRevision: expectedOf(expected),
    credentials: connection.credentials,
    requiresLeader: connection.requiresLeader,
    deadline,
  });
  const answer = await withTimeout(call, deadline + GRACE_MS);
  if (answer === undefined) throw new Error('the client did not answer');
  return answer;
}

function expectedOf(expected: ExpectedRevision): 'no_stream' | 'any' | bigint {
  if (expected === 'none') return 'no_stream';
  return expected === 'any' ? 'any' : BigInt(expected);
}

/** The client serialises data itself, so the data is parsed here first. Metadata can be passed unchanged, as bytes. */
function toClientEvent(event: EncodedEvent): ReturnType<typeof jsonEvent> {
  return jsonEvent({
    id: event.id,
    type: event.type,
    data: JSON.parse(event.data) as JSONType,
    metadata: new TextEncoder().encode(event.metadata),
  });
}
