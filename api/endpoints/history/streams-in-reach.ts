import type { RecordedEvent } from '../../../domain/event-store.ts';
import { DEFAULT_NAMESPACE } from '../../../domain/namespaces/namespace.ts';
import { EVERY_NAMESPACE } from '../../../projections/reach.ts';
import { StreamNamespaces } from '../../../projections/reading/stream-namespaces.ts';
import type { Call } from '../../endpoint.ts';

/** Looks up which namespaces streams belong to. */
export function streamNamespacesIn({
  agents,
  tasks,
  store,
}: Pick<Call['dependencies'], 'agents' | 'tasks' | 'store'>): StreamNamespaces {
  return new StreamNamespaces({
    ofAgent: async (id) => {
      const { state } = await agents.get(id);
      return 'namespace' in state ? state.namespace : DEFAULT_NAMESPACE;
    },
    ofTask: async (id) => {
      const { state } = await tasks.get(id);
      return 'namespace' in state ? state.namespace : DEFAULT_NAMESPACE;
    },
    store,
  });
}

/** Whether an event is in somebody's reach. */
export type InReach = (event: RecordedEvent) => Promise<boolean>;

type CallReach = Pick<Call, 'dependencies' | 'reach'>;

/** Whether an event is in the caller's reach, by its stream; null if every event is. */
export function streamsInReach(call: CallReach): InReach | null {
  return eventsInReach(call, null);
}

/** Like {@link streamsInReach}, but for the audit, in which events about several namespaces belong to `default`. */
export function auditInReach(call: CallReach): InReach | null {
  return eventsInReach(call, DEFAULT_NAMESPACE);
}

function eventsInReach(
  { dependencies, reach }: CallReach,
  ofShared: typeof DEFAULT_NAMESPACE | null,
): InReach | null {
  if (reach === EVERY_NAMESPACE) return null;
  const namespaces = streamNamespacesIn(dependencies);
  return async (event) => {
    const first = event.revision === 0 ? event : undefined;
    return ((await namespaces.of(event.stream, first)) ?? ofShared) === reach;
  };
}
