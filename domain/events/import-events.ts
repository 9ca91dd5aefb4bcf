import { Type } from '@sinclair/typebox';
import { closed } from './schema-parts.ts';

/** Events of `import`: that this log was filled with another's events. The stream itself is never exported. */
export const importEvents = {
  /** Until it is completed, no service may start on the log. */
  ImportBegun: {
    version: 1,
    schema: closed({
      /** Of the export or backup that the events come from. */
      export_id: Type.String(),
      events: Type.Integer({ minimum: 0 }),
    }),
  },
  /** All is there and was compared with what it comes from. */
  ImportCompleted: {
    version: 1,
    schema: closed({ export_id: Type.String(), events: Type.Integer({ minimum: 0 }) }),
  },
} as const;
