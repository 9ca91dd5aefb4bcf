import type { Command } from 'commander';
import type { RecentEvents, Topics } from '../../../api/client/client.ts';
import { usageFault } from '../calling/faults.ts';
import { addPaging, shownOf, type Paging } from '../calling/listing.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';
import { shortTime } from '../terminal/times.ts';
import { isObject, readDocument, valueOf, wholeNumberOf } from '../terminal/values.ts';

/** Milliseconds between two looks at the newest events. */
const PAUSE = 1000;
/** How many are looked at each time, unless more came. */
const LOOK = 100;
/** Most that the service gives at once. */
const MOST = 1000;

type RecentEvent = RecentEvents['events'][number];

/** `svc events …` */
export function addEventCommands(line: CommandLine): Command {
  const group = line.group('events', 'publishes events, and shows what was published');
  addPublish(line, group);
  addTail(line, group);
  addTopics(line, group);
  return group;
}

function addTopics(line: CommandLine, group: Command): void {
  const topics = group.command('topics').description('the patterns that active tasks listen to');
  addPaging(topics, 200);
  const examples = ['events topics', 'events topics --all --json'];
  line.does<Paging>(topics, examples, async (session, { limit, cursor, all = false }) => {
    const ask = (from: string | undefined): Promise<Topics> =>
      session.client.ask((api) => api.events.topics({ limit, cursor: from }));
    let answer = await ask(cursor);
    while (all && answer.next_cursor !== null) {
      const { topics: more, ...rest } = await ask(answer.next_cursor);
      answer = { ...rest, topics: [...answer.topics, ...more] };
    }
    session.answer(answer, () => {
      const { topics: items, total_topics: total, next_cursor } = answer;
      const table = session.table(
        [{ title: 'TOPIC' }, { title: 'TASKS', align: 'right' }, { title: 'IDS', most: 80 }],
        items.map((each) => [each.topic, each.active_tasks, each.task_ids.join(' ')]),
        'no active task listens to events',
      );
      return table + shownOf(session, { items, total, next_cursor }, 'topics');
    });
  });
}

function addPublish(line: CommandLine, group: Command): void {
  const publish = group
    .command('publish <topic> [payload]')
    .description('publishes an event; the payload is a JSON object, @file, or {}')
    .option('--source <agent>', 'in whose name (the caller)');
  const examples = [
    `events publish orders.created '{"order": 4711}'`,
    'events publish a.b @event.yaml',
  ];
  type Options = { readonly source?: string };
  line.does<Options>(publish, examples, async (session, { source }, [topic = '', text = '{}']) => {
    const payload = text.startsWith('@')
      ? await readDocument(text.slice(1), session.surroundings)
      : valueOf(text, 'the payload');
    if (!isObject(payload)) throw usageFault('the payload is no JSON object');
    const source_agent_id = source ?? (await session.caller());
    const body = { topic, payload, source_agent_id };
    const done = await session.client.ask((api) => api.events.publish(body));
    session.answer(done, () => {
      const { event_id, triggered_tasks } = done.details;
      const tasks = triggered_tasks.length;
      return `${event_id} triggers ${tasks} ${tasks === 1 ? 'task' : 'tasks'}`;
    });
  });
}

function addTail(line: CommandLine, group: Command): void {
  const tail = group
    .command('tail')
    .description('the newest events, oldest first; with --follow goes on until Ctrl-C')
    .option('--topic <topic>', 'of one topic')
    .option('-n, --count <n>', 'how many, 1 to 1,000', wholeNumberOf(1, MOST), 10)
    .option('-f, --follow', 'and those that come');
  type Options = { readonly topic?: string; readonly count: number; readonly follow?: boolean };
  const examples = ['events tail --count 50', 'events tail --follow --topic orders.created --json'];
  line.does<Options>(tail, examples, async (session, { topic, count, follow = false }) => {
    const recent = async (most: number): Promise<readonly RecentEvent[]> => {
      const query = { count: most, topic };
      const { events } = await session.client.ask((api) => api.events.recent(query));
      return events.toReversed();
    };
    if (follow) return session.following(() => followEvents(session, recent, count));
    for (const event of await recent(count)) tell(session, event);
  });
}

/** Tells of the newest events, and of each that comes, until it is interrupted. */
async function followEvents(
  session: Session,
  recent: (most: number) => Promise<readonly RecentEvent[]>,
  count: number,
): Promise<void> {
  let newest = await recent(count);
  for (const event of newest) tell(session, event);
  let known = new Set(newest.map(({ event_id }) => event_id));
  for (;;) {
    await session.clock.sleep(PAUSE, session.surroundings.signal);
    newest = await recent(LOOK);
    if (!newest.some(({ event_id }) => known.has(event_id))) newest = await recent(MOST);
    const fresh = newest.filter(({ event_id }) => !known.has(event_id));
    if (known.size > 0 && fresh.length === MOST) session.aside('more came than could be shown');
    // The first look was shorter than this one: what is older than it is not new.
    const first = fresh.findIndex((event) => isNewer(event, newest, known));
    for (const event of first === -1 ? [] : fresh.slice(first)) tell(session, event);
    known = new Set(newest.map(({ event_id }) => event_id));
  }
}

/** Whether an event stands behind one that was told of, in the order of their publication. */
function isNewer(
  event: RecentEvent,
  ordered: readonly RecentEvent[],
  known: ReadonlySet<string>,
): boolean {
  const last = ordered.findLastIndex(({ event_id }) => known.has(event_id));
  return ordered.indexOf(event) > last;
}

function tell(session: Session, event: RecentEvent): void {
  if (session.json) {
    session.jsonLine(event);
    return;
  }
  const { paint } = session;
  const triggers = event.triggered_tasks.length;
  const then =
    triggers === 0 ? '' : paint.faint(` → ${triggers} ${triggers === 1 ? 'task' : 'tasks'}`);
  const when = paint.faint(shortTime(event.published_at));
  const what = printable(JSON.stringify(event.payload));
  session.line(`${when} ${paint.strong(printable(event.topic))} ${what}${then}`);
}
