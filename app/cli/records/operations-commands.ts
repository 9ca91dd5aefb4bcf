import { Option } from 'commander';
import { misfirePolicies } from '../../../domain/vocabulary.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import { shortTime } from '../terminal/times.ts';

/** What became of the fires that a hold kept back; `tasks`: the release did not say. */
const missedWords: Readonly<Record<(typeof misfirePolicies)[number] | 'tasks', string>> = {
  skip: 'was skipped (skip)',
  latest: 'ran once for each task (latest)',
  all: 'ran (all)',
  tasks: 'went by the policy of each task',
};

/** `svc hold`, `svc release`, `svc operations` */
export function addOperationsCommands(line: CommandLine): void {
  const hold = line.program
    .command('hold <why...>')
    .description('nothing fires and no run starts until `svc release`; what runs goes on');
  line.does(hold, ['hold moving the mail server'], async (session, _options, why) => {
    const body = { reason: why.join(' ') };
    const done = await session.client.ask((api) => api.operations.hold(body));
    session.answer(done, () => session.paint.warning(done.message));
  });

  const release = line.program
    .command('release')
    .description('ends a hold; what was due meanwhile goes by the misfire policies')
    .addOption(
      new Option('--missed <policy>', 'what becomes of it, for all tasks').choices(misfirePolicies),
    );
  const examples = ['release', 'release --missed skip'];
  line.does<{ readonly missed?: (typeof misfirePolicies)[number] }>(
    release,
    examples,
    async (session, { missed }) => {
      const body = missed === undefined ? {} : { missed };
      const done = await session.client.ask((api) => api.operations.release(body));
      session.answer(done, () => session.paint.good(done.message));
    },
  );

  const show = line.program
    .command('operations')
    .description('whether the service is on hold, by whom and why');
  line.does(show, ['operations'], async (session) => {
    const answer = await session.client.ask((api) => api.operations.get());
    const { hold: order, released } = answer;
    session.answer(answer, () => {
      if (order !== null) {
        const why = printable(order.reason);
        const said = `on hold since ${shortTime(order.since)}, by ${order.by}: ${why}`;
        return session.paint.warning(said);
      }
      if (released === null) return 'not on hold';
      const last = `last released ${shortTime(released.at)}, by ${released.by}`;
      return `not on hold; ${last}: what was due meanwhile ${missedWords[released.missed ?? 'tasks']}`;
    });
  });
}
