import { Type } from '@sinclair/typebox';
import { event } from './schema-parts.ts';

/** Events of `import`: this log was filled from another one. The stream itself is never exported. */
export const importEvents = {
  /** No service starts with this log until the import is complete. */
  ImportBegun: event({
    /** The id of the export or backup that the import reads. */
    export_id: Type.String(),
    events: Type.Integer({ minimum: 0 }),
  }),
  /** All events were imported and compared with the source. */
  ImportCompleted: event({ export_id: Type.String(), events: Type.Integer({ minimum: 0 }) }),
} as const;
