import type { Static } from '@sinclair/typebox';
import { agentEvents, sessionEvents } from './agent-events.ts';
import { apiKeyEvents, apiKeyUseEvents } from './api-key-events.ts';
import { auditEvents } from './audit-events.ts';
import { backfillEvents } from './backfill-events.ts';
import { importEvents } from './import-events.ts';
import { keyEvents } from './key-events.ts';
import { namespaceEvents } from './namespace-events.ts';
import { operationsEvents } from './operations-events.ts';
import { payloadEvents } from './payload-events.ts';
import { personEvents } from './person-events.ts';
import { projectionEvents } from './projection-events.ts';
import { replayEvents } from './replay-events.ts';
import { retentionEvents } from './retention-events.ts';
import { runEvents } from './run-events.ts';
import { secretEvents, secretUseEvents } from './secret-events.ts';
import { firesEvents, taskEvents } from './task-events.ts';
import { extensionEvents, idempotencyEvents, topicEvents } from './topic-events.ts';
import { webhookEvents } from './webhook-events.ts';
import { workerEvents } from './worker-events.ts';

/** Every event type, with the version and schema of its data. */
export const catalogue = {
  ...agentEvents,
  ...sessionEvents,
  ...personEvents,
  ...apiKeyEvents,
  ...apiKeyUseEvents,
  ...taskEvents,
  ...firesEvents,
  ...runEvents,
  ...backfillEvents,
  ...keyEvents,
  ...topicEvents,
  ...payloadEvents,
  ...extensionEvents,
  ...idempotencyEvents,
  ...auditEvents,
  ...namespaceEvents,
  ...operationsEvents,
  ...importEvents,
  ...projectionEvents,
  ...replayEvents,
  ...retentionEvents,
  ...webhookEvents,
  ...workerEvents,
  ...secretEvents,
  ...secretUseEvents,
} as const;

type Catalogue = typeof catalogue;

export type EventType = keyof Catalogue;

/** Data of an event type. */
export type DataOf<T extends EventType> = Static<Catalogue[T]['schema']>;

/** The events of some of the types, as a closed union over `type`. */
export type EventOf<T extends EventType> = {
  [K in T]: { readonly type: K; readonly data: DataOf<K> };
}[T];

/** Any event of the service: `switch (event.type)` narrows `event.data`. */
export type DomainEvent = EventOf<EventType>;

export type AgentEvent = EventOf<
  | 'AgentRegistered'
  | 'AgentUpdated'
  | 'AgentCredentialsSet'
  | 'WebhookSecretRotated'
  | 'AgentDisabled'
  | 'AgentEnabled'
  | 'AgentRemoved'
  | 'Abandoned'
>;
export type AgentNameEvent = EventOf<'NameReserved' | 'NameReleased'>;
export type AdminsEvent = EventOf<'AdminWithdrawn'>;
export type SessionEvent = EventOf<keyof typeof sessionEvents>;
export type PersonEvent = EventOf<keyof typeof personEvents>;
export type ApiKeyEvent = EventOf<keyof typeof apiKeyEvents>;
export type TaskEvent = EventOf<keyof typeof taskEvents | 'Abandoned'>;
export type FiresEvent = EventOf<keyof typeof firesEvents>;
export type RunEvent = EventOf<keyof typeof runEvents | 'Abandoned'>;
export type BackfillEvent = EventOf<keyof typeof backfillEvents>;
export type PayloadEvent = EventOf<keyof typeof payloadEvents>;
export type KeyEvent = EventOf<keyof typeof keyEvents>;
export type NamespaceEvent = EventOf<keyof typeof namespaceEvents>;
export type OperationsEvent = EventOf<keyof typeof operationsEvents>;
export type ImportEvent = EventOf<keyof typeof importEvents>;
export type ProjectionEvent = EventOf<keyof typeof projectionEvents>;
export type ReplayEvent = EventOf<keyof typeof replayEvents>;
export type WebhookEvent = EventOf<keyof typeof webhookEvents>;
export type WorkerEvent = EventOf<keyof typeof workerEvents>;
export type IdempotencyEvent = EventOf<keyof typeof idempotencyEvents>;

/** The event of a run. Its payload is left out if it is stored once for all runs of the event. */
export type RequestedEvent = NonNullable<DataOf<'RunRequested'>['event']>;
/** A published event, as its runs and the conditions of waits see it. */
export type TriggeringEvent = Required<RequestedEvent>;
export type StepEnd = DataOf<'RunStepCompleted'>;
