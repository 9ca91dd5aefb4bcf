import { Type } from '@sinclair/typebox';
import { OneOf, closed } from '../../domain/events/schema-parts.ts';
import { count, time } from './answer-schemas.ts';

/** What is answered about extensions, whichever there are. */

const text = Type.String();
const amount = Type.Number({ minimum: 0 });

const Extension = Type.Object(
  {
    state: OneOf(['discovered', 'loading', 'loaded', 'failed', 'disabled'] as const),
    info: closed({
      id: text,
      name: text,
      version: text,
      description: text,
      source: OneOf(['builtin', 'env_dir', 'entry_point'] as const),
      reason: Type.Optional(Type.String({ description: 'why it failed' })),
      faults: Type.Optional(
        Type.Integer({ minimum: 1, description: 'outside of requests, or by no answer to one' }),
      ),
      last_fault: Type.Optional(text),
      unsettled: Type.Optional(
        Type.Array(text, { description: 'what takes longer than it may, and is waited for' }),
      ),
    }),
    capabilities: Type.Array(
      OneOf(['ROUTES', 'TOOLS', 'EVENTS_PUB', 'EVENTS_SUB', 'BACKGROUND_TASKS', 'STATIC'] as const),
    ),
    loaded_ms: amount,
    metrics: closed({ requests_total: count, errors_total: count, latency_ms_sum: amount }),
  },
  { title: 'Extension', additionalProperties: false },
);

/** The interface's extension status record. */
export const ExtensionStatus = Type.Object(
  {
    extensions: Type.Record(text, Extension),
    discovery_sources: Type.Array(OneOf(['builtin', 'env_dir', 'entry_point'] as const)),
    total_extensions: count,
    loaded_extensions: count,
    failed_extensions: count,
  },
  { title: 'ExtensionStatus', additionalProperties: false },
);

/** The health of an extension: by convention, so that its own may tell more. */
export const ExtensionHealth = Type.Object(
  { status: text, timestamp: time, version: text, checks: Type.Record(text, text) },
  { title: 'ExtensionHealth' },
);
