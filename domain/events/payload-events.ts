import { Type } from '@sinclair/typebox';
import { AnyObject, event, Id, Namespace } from './schema-parts.ts';

/** Events of `payload-<event id>`: the payload of one published event, for all runs whose request leaves it out. */
export const payloadEvents = {
  /** The first event, before any such run is requested. */
  PayloadStored: event({
    event_id: Id,
    payload: AnyObject,
    /** The tasks that the publication triggered; the ids of their runs derive from them. */
    triggered_tasks: Type.Array(Id, { maxItems: 5000 }),
    /** The namespace of the published event. */
    namespace: Namespace,
  }),
  /** A retry of one of the runs needs the payload too. Appended before that retry is requested. */
  PayloadReferenced: event({ run_id: Id, namespace: Namespace }),
} as const;
