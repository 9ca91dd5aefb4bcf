import type { Command } from 'commander';
import { CommandFault, exitCodes, usageFault } from '../calling/faults.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import { barOf } from './rebuild-follow.ts';
import type { Done } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { shortTime } from '../terminal/times.ts';
import { part, rateOf, wholeNumberOf } from '../terminal/values.ts';

/** Views as of a moment, as the service answers. */
interface ShownReplay {
  readonly name: string;
  readonly state: 'building' | 'ready' | 'failed' | 'dropping';
  readonly at: string;
  readonly kept_until: string;
  readonly progress: number;
  readonly events_per_second: number;
  readonly documents: Readonly<Record<string, number>> | null;
  readonly error: string | null;
}

interface MakingOptions {
  readonly until?: string;
  readonly into?: string;
  readonly rate?: number;
  readonly keep?: number;
  readonly detach?: boolean;
}

/** Milliseconds between two looks. */
const PAUSE = 250;

/** `svc replay --until … --into …`, `svc replay list`, `svc replay drop`; scope `ops` */
export function addViewReplays(line: CommandLine, group: Command): void {
  group
    .option('--until <moment>', 'makes all views as of an instant, or a position of the log')
    .option('--into <name>', 'the name to read them by, with `--view <name>`')
    .option('--rate <n>', 'events a second at most', rateOf)
    .option(
      '--keep <hours>',
      'hours until they are thrown away, 1 to 720 (168)',
      wholeNumberOf(1, 720),
    )
    .option('--detach', 'does not wait for them');
  const examples = [
    'replay --until 2026-11-20T08:00Z --into friday',
    'runs list --view friday --state failed',
    'stats --view friday',
  ];
  line.does<MakingOptions>(group, examples, async (session, options) => {
    const { until, into: name, rate, keep: keep_hours, detach = false } = options;
    if (until === undefined || name === undefined) {
      throw usageFault('it takes --until and --into, or one of its commands (add --help)');
    }
    const body = { name, until, rate, keep_hours };
    const done = await session.client.post<Done>('/replays', { body });
    if (detach) {
      session.answer(done, () => done.message);
      return;
    }
    const made = await followMaking(session, name);
    session.answer(made, () => {
      const documents = Object.entries(made.documents ?? {}).map(
        ([view, n]) => `${view} ${n.toLocaleString('en')}`,
      );
      const until = `until ${shortTime(made.kept_until)}`;
      return `as of ${shortTime(made.at)}: ${documents.join(', ')}; read it with --view ${name}, ${until}`;
    });
  });
  const list = group.command('list').alias('ls').description('views as of a moment, by name');
  line.does(list, ['replay list'], async (session) => {
    const replays = await readReplays(session);
    session.answer({ replays }, () =>
      session.table(
        [
          { title: 'NAME' },
          { title: 'AS OF' },
          { title: 'STATE' },
          { title: 'RUNS', align: 'right' },
          { title: 'KEPT UNTIL' },
          { title: 'ERROR', most: 60 },
        ],
        replays.map((each) => [
          each.name,
          shortTime(each.at),
          each.state === 'building' ? `${Math.floor(each.progress * 100)} %` : each.state,
          each.documents?.['runs'] ?? '',
          shortTime(each.kept_until),
          each.error,
        ]),
        'there is none',
      ),
    );
  });
  const drop = group.command('drop <name>').description('throws views of a moment away');
  line.does(drop, ['replay drop friday'], async (session, _options, [name]) => {
    const done = await session.client.delete<Done>(`/replays/${part(name)}`);
    session.answer(done, () => done.message);
  });
}

async function readReplays({ client }: Session): Promise<readonly ShownReplay[]> {
  return (await client.get<{ readonly replays: readonly ShownReplay[] }>('/replays')).replays;
}

/** Shows how far it is until it can be read: as a bar that moves, or a line for each tenth. */
async function followMaking(session: Session, name: string): Promise<ShownReplay> {
  const { err, signal } = session.surroundings;
  let tenth = -1;
  for (;;) {
    const replay = (await readReplays(session)).find((each) => each.name === name);
    if (replay === undefined) {
      throw new CommandFault(exitCodes.failure, `the replay ${name} was dropped meanwhile`);
    }
    const { progress, state, events_per_second: rate } = replay;
    const speed = rate > 0 ? `  ${rate.toLocaleString('en')} events/s` : '';
    const text = barOf(progress) + speed;
    const now = Math.floor(progress * 10);
    if (err.isTerminal) err.write(`\r\u001b[2K${text}`);
    else if (now !== tenth) err.write(`${text}\n`);
    tenth = now;
    if (state !== 'building') {
      if (err.isTerminal) err.write('\n');
      if (state === 'ready') return replay;
      const why = printable(replay.error ?? 'it is thrown away');
      throw new CommandFault(exitCodes.failure, `the replay ${name} failed: ${why}`);
    }
    await session.clock.sleep(PAUSE, signal);
  }
}
