import { addList } from '../calling/lists.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { choice, wholeNumber, withDefault } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { printable } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import { pathSegment } from '../terminal/values.ts';

interface StreamItem {
  readonly stream: string;
  readonly revision: number;
  readonly last_at: string;
}

interface EventItem {
  readonly revision: number;
  readonly type: string;
  readonly data: unknown;
  readonly metadata: Readonly<Record<string, string>>;
}

interface StreamEvents {
  readonly stream: string;
  readonly items: readonly EventItem[];
  readonly next_from: number | null;
}

/** Milliseconds between two polls of a stream. */
const POLL_INTERVAL = 1000;

/** Most characters of an event's data; `--json` shows all. */
const MAX_DATA_LENGTH = 1000;

/** `svc streams …` */
export function addStreamCommands(line: CommandLine): void {
  const group = line.group('streams', 'list, show and follow streams (scope audit:read)');
  addList(line, group, 'list [prefix]', {
    description: 'list streams whose names start with a prefix',
    examples: ['streams list task-'],
    path: () => '/streams',
    query: (_, [prefix]) => ({ prefix }),
    columns: (): readonly RecordColumn<StreamItem>[] => [
      { title: 'STREAM', cell: ({ stream }) => stream },
      { title: 'REVISION', align: 'right', cell: ({ revision }) => revision },
      { title: 'LAST EVENT', cell: ({ last_at }) => shortTime(last_at) },
    ],
    noun: 'streams',
  });
  line.add(group, 'show <stream>', {
    description: 'show the events of a stream',
    options: {
      from: wholeNumber('revision', 'start at this revision', 0, 999_999_999),
      direction: choice('direction', '', ['forwards', 'backwards']),
      limit: wholeNumber('n', 'number of events, 1-200 (default: 50)', 1, 200),
    },
    examples: [
      'streams show task-01a1fc11-…',
      'streams show fires-01a1fc11-… --direction backwards',
    ],
    run: async (session, query, [stream]) => {
      const path = `/streams/${pathSegment(stream)}`;
      const answer = await session.client.get<StreamEvents>(path, { query });
      session.answer(answer, () => {
        if (answer.items.length === 0) return 'no events';
        const shown = answer.items.map((event) => lineOf(session, event)).join('\n');
        const next = answer.next_from;
        return shown + (next === null ? '' : session.paint.faint(`\ncontinue with --from ${next}`));
      });
    },
  });
  line.add(group, 'tail <stream>', {
    description: 'show the last events of a stream and follow new ones until Ctrl-C',
    options: {
      limit: withDefault(wholeNumber('n', 'number of earlier events, 1-200', 1, 200), 10),
    },
    examples: ['streams tail run-ce89cf0f-…', 'streams tail operations --json'],
    run: (session, { limit }, [stream]) =>
      session.following(() => followStream(session, `/streams/${pathSegment(stream)}`, limit)),
  });
}

/** Prints the last events of a stream and then each new one, until it is interrupted. */
async function followStream(session: Session, path: string, limit: number): Promise<void> {
  const { client, clock, environment } = session;
  const read = async (query: Readonly<Record<string, string | number>>) =>
    (await client.get<StreamEvents>(path, { query })).items;
  let items = (await read({ direction: 'backwards', limit })).toReversed();
  for (let from = 0; ;) {
    for (const event of items) session.item(event, () => lineOf(session, event));
    from = (items.at(-1)?.revision ?? from - 1) + 1;
    await clock.sleep(POLL_INTERVAL, environment.signal);
    items = [...(await read({ from }))];
  }
}

function lineOf({ paint }: Session, { revision, type, data, metadata }: EventItem): string {
  const { occurredAt = '', actor = '', reason } = metadata;
  const why = reason === undefined ? '' : ` (${reason})`;
  const json = JSON.stringify(data);
  const shown =
    json.length > MAX_DATA_LENGTH
      ? `${json.slice(0, MAX_DATA_LENGTH)}… (${json.length} characters)`
      : json;
  const rest = printable(`${shown} by ${actor}${why}`);
  return `${paint.faint(`${revision}  ${shortTime(occurredAt)}`)}  ${paint.strong(type)} ${rest}`;
}
