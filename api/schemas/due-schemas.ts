import { Type, type Static } from '@sinclair/typebox';
import { pageParameters } from '../endpoints/listing.ts';
import { id, pageOf, time } from './response-schemas.ts';

/** Query and response of `GET /tasks/due`. */

export const DueQuery = Type.Object({
  ...pageParameters,
  until: Type.Optional(Type.String({ maxLength: 64, description: 'an instant with an offset' })),
});
export type DueQuery = Static<typeof DueQuery>;

const DueTask = Type.Object(
  { task_id: id, title: Type.String(), next_run_at: time },
  { title: 'DueTask', additionalProperties: false },
);
export const DueTaskPage = pageOf('DueTaskPage', DueTask);
export type DueTaskPage = Static<typeof DueTaskPage>;
