import type { Command } from 'commander';
import type { RecentEvents, Topics } from '../../../api/client/client.ts';
import { continuationHint, paging } from '../calling/lists.ts';
import type { Session } from '../calling/session.ts';
import { flag, short, text, wholeNumber, withDefault } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { printable } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import { readObject } from '../terminal/values.ts';

/** Milliseconds between two polls for new events. */
const POLL_INTERVAL = 1000;
/** Events of a poll, unless more are new. */
const POLL_SIZE = 100;
/** Most events that the service returns at once. */
const MAX_EVENTS = 1000;

type RecentEvent = RecentEvents['events'][number];

/** `svc events …` */
export function addEventCommands(line: CommandLine): void {
  const group = line.group('events', 'publish events and show published ones');
  addPublish(line, group);
  addTail(line, group);
  addTopics(line, group);
}

function addTopics(line: CommandLine, group: Command): void {
  line.add(group, 'topics', {
    description: 'list the patterns that active tasks listen to',
    options: paging(200),
    examples: ['events topics', 'events topics --all --json'],
    run: async (session, { limit, cursor, all = false }) => {
      const read = (from: string | undefined): Promise<Topics> =>
        session.client.call((api) => api.events.topics({ limit, cursor: from }));
      let answer = await read(cursor);
      while (all && answer.next_cursor !== null) {
        const { topics: more, ...rest } = await read(answer.next_cursor);
        answer = { ...rest, topics: [...answer.topics, ...more] };
      }
      session.answer(answer, () => {
        const { topics: items, total_topics: total, next_cursor } = answer;
        const table = session.table<Topics['topics'][number]>(
          [
            { title: 'TOPIC', cell: ({ topic }) => topic },
            { title: 'TASKS', align: 'right', cell: ({ active_tasks }) => active_tasks },
            { title: 'IDS', maxWidth: 80, cell: ({ task_ids }) => task_ids.join(' ') },
          ],
          items,
          'no active task listens to events',
        );
        return table + continuationHint(session, { items, total, next_cursor }, 'topics');
      });
    },
  });
}

function addPublish(line: CommandLine, group: Command): void {
  line.add(group, 'publish <topic> [payload]', {
    description: 'publish an event; the payload is a JSON object or @file (default: {})',
    options: { source: text('agent', 'the publishing agent (default: the caller)') },
    examples: [`events publish orders.created '{"order": 4711}'`, 'events publish a.b @event.yaml'],
    run: async (session, { source }, [topic = '', argument = '{}']) => {
      const payload = await readObject(argument, 'the payload', session.environment);
      const source_agent_id = source ?? (await session.caller());
      const body = { topic, payload, source_agent_id };
      await session.show(
        (api) => api.events.publish(body),
        ({ details }) => `${details.event_id} triggers ${tasks(details.triggered_tasks.length)}`,
      );
    },
  });
}

const tasks = (count: number): string => `${count} ${count === 1 ? 'task' : 'tasks'}`;

function addTail(line: CommandLine, group: Command): void {
  line.add(group, 'tail', {
    description: 'show the newest events, oldest first',
    options: {
      topic: text('topic', 'events of one topic'),
      count: short(
        'n',
        withDefault(wholeNumber('n', 'number of events, 1-1,000', 1, MAX_EVENTS), 10),
      ),
      follow: short('f', flag('follow new events until Ctrl-C')),
    },
    examples: ['events tail --count 50', 'events tail --follow --topic orders.created --json'],
    run: async (session, { topic, count, follow = false }) => {
      const read = async (size: number): Promise<readonly RecentEvent[]> => {
        const query = { count: size, topic };
        const { events } = await session.client.call((api) => api.events.recent(query));
        return events.toReversed();
      };
      if (follow) return session.following(() => followEvents(session, read, count));
      for (const event of await read(count)) print(session, event);
    },
  });
}

/** Prints the newest events and then each new one, until it is interrupted. */
async function followEvents(
  session: Session,
  read: (size: number) => Promise<readonly RecentEvent[]>,
  count: number,
): Promise<void> {
  let newest = await read(count);
  for (const event of newest) print(session, event);
  for (;;) {
    const known = new Set(newest.map(({ event_id }) => event_id));
    const isKnown = ({ event_id }: RecentEvent): boolean => known.has(event_id);
    await session.clock.sleep(POLL_INTERVAL, session.environment.signal);
    newest = await read(POLL_SIZE);
    if (!newest.some(isKnown)) newest = await read(MAX_EVENTS);
    // This page can have events older than the first page: only events after a known event are new.
    const fresh = newest.slice(newest.findLastIndex(isKnown) + 1);
    if (known.size > 0 && fresh.length === MAX_EVENTS) {
      session.aside(`only the newest ${MAX_EVENTS} events since the last poll are shown`);
    }
    for (const event of fresh) print(session, event);
  }
}

function print(session: Session, event: RecentEvent): void {
  session.item(event, () => {
    const { paint } = session;
    const count = event.triggered_tasks.length;
    const triggered = count === 0 ? '' : paint.faint(` → ${tasks(count)}`);
    const payload = printable(JSON.stringify(event.payload));
    const topic = paint.strong(printable(event.topic));
    return `${paint.faint(shortTime(event.published_at))} ${topic} ${payload}${triggered}`;
  });
}
