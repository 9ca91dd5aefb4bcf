import type { Command } from 'commander';
import { CommandError, exitCodes, usageError } from '../calling/command-errors.ts';
import type { Done } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { flag, positiveNumber, text, wholeNumber } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { progressBar, ProgressLine } from '../terminal/charts.ts';
import { printable } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';
import { pathSegment } from '../terminal/values.ts';

/** Views as of a time, in the service's response. */
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

/** Milliseconds between two polls. */
const POLL_INTERVAL = 250;

/** `svc replay --until … --into …`, `svc replay list`, `svc replay drop`; scope `ops` */
export function addViewReplays(line: CommandLine, group: Command): void {
  line.define(group, {
    description: group.description(),
    options: {
      until: text('time', 'build all views as of an instant or a log position'),
      into: text('name', 'the name to read them by, with `--view <name>`'),
      rate: positiveNumber('n', 'most events a second'),
      keep: wholeNumber('hours', 'hours until they are deleted, 1-720 (default: 168)', 1, 720),
      detach: flag('do not wait for them'),
    },
    examples: [
      'replay --until 2026-11-20T08:00Z --into friday',
      'runs list --view friday --state failed',
      'stats --view friday',
    ],
    run: async (session, { until, into: name, rate, keep: keep_hours, detach = false }) => {
      if (until === undefined || name === undefined) {
        throw usageError('give --until and --into, or one of the commands (see --help)');
      }
      const body = { name, until, rate, keep_hours };
      const done = await session.client.post<Done>('/replays', { body });
      if (detach) {
        session.answer(done, () => done.message);
        return;
      }
      const built = await followBuild(session, name);
      session.answer(built, () => {
        const documents = Object.entries(built.documents ?? {})
          .map(([view, count]) => `${view} ${count.toLocaleString('en')}`)
          .join(', ');
        const usage = `read it with --view ${name}, until ${shortTime(built.kept_until)}`;
        return `as of ${shortTime(built.at)}: ${documents}; ${usage}`;
      });
    },
  });
  line.add(group, 'list', {
    description: 'list the views as of a time',
    examples: ['replay list'],
    run: async (session) => {
      const replays = await readReplays(session);
      session.answer({ replays }, () =>
        session.table<ShownReplay>(
          [
            { title: 'NAME', cell: ({ name }) => name },
            { title: 'AS OF', cell: ({ at }) => shortTime(at) },
            {
              title: 'STATE',
              cell: ({ state, progress }) =>
                state === 'building' ? `${Math.floor(progress * 100)} %` : state,
            },
            { title: 'RUNS', align: 'right', cell: (each) => each.documents?.['runs'] ?? '' },
            { title: 'KEPT UNTIL', cell: ({ kept_until }) => shortTime(kept_until) },
            { title: 'ERROR', maxWidth: 60, cell: ({ error }) => error },
          ],
          replays,
          'no replays',
        ),
      );
    },
  });
  line.add(group, 'drop <name>', {
    description: 'delete views as of a time',
    examples: ['replay drop friday'],
    run: (session, _, [name]) => {
      const path = `/replays/${pathSegment(name)}`;
      return session.done((api) => api.request<Done>({ method: 'DELETE', path }));
    },
  });
}

async function readReplays({ client }: Session): Promise<readonly ShownReplay[]> {
  return (await client.get<{ readonly replays: readonly ShownReplay[] }>('/replays')).replays;
}

/** Shows the progress until the views are ready. @throws CommandError if that fails */
async function followBuild(session: Session, name: string): Promise<ShownReplay> {
  const { err, signal } = session.environment;
  const line = new ProgressLine(err);
  for (;;) {
    const replay = (await readReplays(session)).find((each) => each.name === name);
    if (replay === undefined) {
      throw new CommandError(exitCodes.failure, `the replay ${name} was dropped meanwhile`);
    }
    const { progress, state, events_per_second: rate } = replay;
    const speed = rate > 0 ? `  ${rate.toLocaleString('en')} events/s` : '';
    line.show(progressBar(progress) + speed, progress);
    if (state !== 'building') {
      line.end();
      if (state === 'ready') return replay;
      const why = printable(replay.error ?? 'it is being deleted');
      throw new CommandError(exitCodes.failure, `the replay ${name} failed: ${why}`);
    }
    await session.clock.sleep(POLL_INTERVAL, signal);
  }
}
