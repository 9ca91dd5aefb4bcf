import { changesBetween, type Change } from '../../domain/record-changes.ts';
import { requireReadable, type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { jsonBytes } from '../../domain/pipeline/json-size.ts';
import { streams } from '../../domain/streams.ts';
import { cutValue } from '../cut-document.ts';
import { agentsProjection, type AgentDocument } from '../views/agents.ts';
import { withFiresUpTo } from './as-of.ts';
import { runsProjection, type RunDocument } from '../views/runs.ts';
import { tasksProjection, type TaskDocument } from '../views/tasks.ts';

export interface HistoryItem {
  readonly revision: number;
  /** When it happened. */
  readonly at: string;
  readonly actor: string;
  readonly type: string;
  /** In the actor's words; null if it gave none. */
  readonly reason: string | null;
  readonly changes: readonly Change[];
}

export interface HistoryPage {
  readonly items: readonly HistoryItem[];
  /** The revision to continue from; null at the end. */
  readonly next: number | null;
}

export interface HistorySpan {
  readonly from: number;
  readonly limit: number;
}

const PAGE = 100;

/** Bytes of items after which a page ends early, so that a response stays within 4 MiB. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024 - 16 * 1024;

/** Values with more bytes than this are cut in a change. The record itself has the whole value. */
const MAX_VALUE_BYTES = 64 * 1024;

/** How the events of a record fold, and which fields are compared. */
interface RecordFold<D> {
  readonly stream: string;
  /** The record just before an event of the span, if folding the stream alone does not produce that record. */
  readonly before?: (document: D | null, event: RecordedEvent) => Promise<D | null>;
  readonly evolve: (document: D | null, event: RecordedEvent) => D | null;
  readonly show: (document: D) => object | Promise<object>;
}

/** The changes of a task, event by event, with its next fire as of each event; null if the task never existed. */
export function taskHistory(
  store: EventStore,
  id: string,
  span: HistorySpan,
): Promise<HistoryPage | null> {
  return historyOf<TaskDocument>(store, span, {
    stream: streams.task(id),
    before: (task, event) => withFiresUpTo(store, task, id, event.position),
    evolve: (task, event) => tasksProjection.evolve(task, event, id),
    // These fields are left out because the event itself says who paused or snoozed the task.
    show: ({
      id: _id,
      rhythm: _rhythm,
      paused: _paused,
      snoozed: _snoozed,
      secrets: _secrets,
      ...task
    }) => withoutBookkeeping(task),
  });
}

/**
 * The changes of a run, event by event; null if the run never existed.
 * @param show the run as clients see it
 */
export function runHistory(
  store: EventStore,
  id: string,
  span: HistorySpan,
  show: (run: RunDocument) => object | Promise<object>,
): Promise<HistoryPage | null> {
  return historyOf<RunDocument>(store, span, {
    stream: streams.run(id),
    evolve: (run, event) => runsProjection.evolve(run, event, id),
    show: async (run) => {
      const { id: _id, ...shown } = (await show(run)) as JsonObject;
      return withoutBookkeeping(shown);
    },
  });
}

/** The changes of an agent, event by event, including its removal; null if it never existed. No secrets. */
export function agentHistory(
  store: EventStore,
  id: string,
  span: HistorySpan,
): Promise<HistoryPage | null> {
  return historyOf<AgentDocument>(store, span, {
    stream: streams.agent(id),
    evolve: (agent, event) => agentsProjection.evolve(agent, event, id),
    show: ({ id: _id, ...agent }) => withoutBookkeeping(agent),
  });
}

/** A record without the fields that differ after every change. */
function withoutBookkeeping(shown: object): object {
  const {
    revision: _revision,
    created_at: _created,
    updated_at: _updated,
    ...rest
  } = shown as JsonObject;
  return rest;
}

/**
 * A page of a history. It ends before an event that cannot be read: later changes cannot be computed.
 * @throws EventStoreError `CORRUPT_EVENT` if the page begins at or after such an event
 */
async function historyOf<D>(
  store: EventStore,
  { from, limit }: HistorySpan,
  { stream, before, evolve, show }: RecordFold<D>,
): Promise<HistoryPage | null> {
  const items: HistoryItem[] = [];
  let document: D | null = null;
  let bytes = 0;
  for (let next = 0; ;) {
    const page = await store.readStream(stream, { from: next, limit: PAGE, faulty: true });
    for (const event of page) {
      next = event.revision + 1;
      if (items.length === limit || (event.fault !== undefined && items.length > 0)) {
        return { items, next: event.revision };
      }
      requireReadable(event);
      if (event.revision < from) {
        document = evolve(document, event);
        continue;
      }
      const known: D | null = before === undefined ? document : await before(document, event);
      document = evolve(known, event);
      const changes = changesBetween(await shown(known, show), await shown(document, show));
      const item = itemOf(event, changes.map(cutChange));
      bytes += jsonBytes(item) + 1;
      if (bytes > MAX_PAGE_BYTES && items.length > 0) return { items, next: event.revision };
      items.push(item);
    }
    if (page.length < PAGE) return next === 0 ? null : { items, next: null };
  }
}

async function shown<D>(
  document: D | null,
  show: RecordFold<D>['show'],
): Promise<JsonObject | null> {
  return document === null ? null : ((await show(document)) as JsonObject);
}

function cutChange({ path, before, after }: Change): Change {
  return {
    path,
    before: cutValue(before, MAX_VALUE_BYTES),
    after: cutValue(after, MAX_VALUE_BYTES),
  };
}

function itemOf(
  { revision, type, metadata: { occurredAt: at, actor, reason } }: RecordedEvent,
  changes: readonly Change[],
): HistoryItem {
  return { revision, at, actor, type, reason: reason ?? null, changes };
}
