import { Type } from '@sinclair/typebox';
import { event } from './schema-parts.ts';

/** Events of `import`: this log was filled from another one. The stream itself is never exported. */
export const importEvents = {
  /** No service starts on the log until the import is completed. */
  ImportBegun: event({
    /** Of the export or backup that it reads. */
    export_id: Type.String(),
    events: Type.Integer({ minimum: 0 }),
  }),
  /** Everything was imported and compared with its source. */
  ImportCompleted: event({ export_id: Type.String(), events: Type.Integer({ minimum: 0 }) }),
} as const;
