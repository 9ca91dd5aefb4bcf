import { Type } from '@sinclair/typebox';
import { OneOf, closed } from '../../domain/events/schema-parts.ts';
import { count, time } from './response-schemas.ts';

/** Responses about extensions. */

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
        Type.Integer({
          minimum: 1,
          description: 'failures outside requests, and requests without a response',
        }),
      ),
      last_fault: Type.Optional(text),
      unsettled: Type.Optional(
        Type.Array(text, {
          description: 'operations that exceed their time limit and are still running',
        }),
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

/** The status of all extensions. */
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

/** The health of an extension, by convention. Extensions may add fields. */
export const ExtensionHealth = Type.Object(
  { status: text, timestamp: time, version: text, checks: Type.Record(text, text) },
  { title: 'ExtensionHealth' },
);
