import { Type, type Static } from '@sinclair/typebox';
import { AnyObject, closed } from '../../domain/events/schema-parts.ts';
import { namespaceParameter } from '../endpoints/listing.ts';

/** The tools of pipelines. */

export const ToolQuery = Type.Object({ namespace: namespaceParameter });
export type ToolQuery = Static<typeof ToolQuery>;

export const ToolList = Type.Object(
  {
    tools: Type.Array(
      closed({
        name: Type.String(),
        schema: AnyObject,
        own: Type.Boolean(),
      }),
    ),
    step: AnyObject,
  },
  { title: 'ToolList', additionalProperties: false },
);
export type ToolList = Static<typeof ToolList>;
