import { Option, type Command } from 'commander';
import { addPaging, listAll, type Paging } from '../calling/listing.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';
import { shortTime } from '../terminal/times.ts';
import { part, wholeNumberOf } from '../terminal/values.ts';

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

/** Milliseconds between two looks at a stream that is followed. */
const PAUSE = 1000;

/** Characters of an event's data that are shown; with `--json` all are. */
const MOST = 1000;

/** `svc streams …` */
export function addStreamCommands(line: CommandLine): void {
  const group = line.group('streams', 'lists, shows and follows streams of the log (audit:read)');
  const list = group
    .command('list [prefix]')
    .alias('ls')
    .description('the streams whose names begin so');
  addPaging(list);
  line.does<Paging>(list, ['streams list task-'], async (session, options, [prefix]) => {
    const page = await listAll<StreamItem>(session.client, '/streams', { prefix }, options);
    session.answer(page, () => {
      const rows = page.items.map((each) => [each.stream, each.revision, shortTime(each.last_at)]);
      const columns = [
        { title: 'STREAM' },
        { title: 'REVISION', align: 'right' as const },
        { title: 'LAST EVENT' },
      ];
      const more = page.next_cursor;
      const hint = more === null ? '' : `\ngo on with --cursor ${more}, or take --all`;
      return session.table(columns, rows, 'no streams') + session.paint.faint(hint);
    });
  });
  addShow(line, group);
  addTail(line, group);
}

function addShow(line: CommandLine, group: Command): void {
  const show = group
    .command('show <stream>')
    .description('the events of a stream')
    .option('--from <revision>', 'from this one on', wholeNumberOf(0, 999_999_999))
    .addOption(new Option('--direction <way>').choices(['forwards', 'backwards']))
    .option('--limit <n>', 'how many, 1 to 200 (50)', wholeNumberOf(1, 200));
  interface Options {
    readonly from?: number;
    readonly direction?: string;
    readonly limit?: number;
  }
  const examples = [
    'streams show task-01a1fc11-…',
    'streams show fires-01a1fc11-… --direction backwards',
  ];
  line.does<Options>(show, examples, async (session, { from, direction, limit }, [stream]) => {
    const query = { from, direction, limit };
    const answer = await session.client.get<StreamEvents>(`/streams/${part(stream)}`, { query });
    session.answer(answer, () => {
      if (answer.items.length === 0) return 'no events';
      const shown = answer.items.map((event) => lineOf(session, event)).join('\n');
      const next = answer.next_from;
      const hint = next === null ? '' : `\ngo on with --from ${next}`;
      return shown + session.paint.faint(hint);
    });
  });
}

function addTail(line: CommandLine, group: Command): void {
  const tail = group
    .command('tail <stream>')
    .description('the last events of a stream, and those that come, until it is interrupted')
    .option('--limit <n>', 'how many of the last, 1 to 200', wholeNumberOf(1, 200), 10);
  type Options = { readonly limit: number };
  const examples = ['streams tail run-ce89cf0f-…', 'streams tail operations --json'];
  line.does<Options>(tail, examples, (session, { limit }, [stream]) =>
    session.following(() => followStream(session, `/streams/${part(stream)}`, limit)),
  );
}

/** Tells of the last events of a stream, and of each that comes, until it is interrupted. */
async function followStream(session: Session, path: string, limit: number): Promise<void> {
  const { client, clock, surroundings } = session;
  const last = { direction: 'backwards', limit };
  let { items } = await client.get<StreamEvents>(path, { query: last });
  items = [...items].reverse();
  for (let from = 0; ;) {
    for (const event of items) {
      if (session.json) session.jsonLine(event);
      else session.line(lineOf(session, event));
    }
    const end = items.at(-1);
    if (end !== undefined) from = end.revision + 1;
    await clock.sleep(PAUSE, surroundings.signal);
    ({ items } = await client.get<StreamEvents>(path, { query: { from } }));
  }
}

function lineOf({ paint }: Session, { revision, type, data, metadata }: EventItem): string {
  const { occurredAt = '', actor = '', reason } = metadata;
  const why = reason === undefined ? '' : ` (${reason})`;
  const whole = JSON.stringify(data);
  const shown =
    whole.length > MOST ? `${whole.slice(0, MOST)}… (${whole.length} characters)` : whole;
  const said = printable(`${shown} by ${actor}${why}`);
  return `${paint.faint(`${revision}  ${shortTime(occurredAt)}`)}  ${paint.strong(type)} ${said}`;
}
