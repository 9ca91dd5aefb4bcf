import { misfirePolicies } from '../../../domain/vocabulary.ts';
import { choice } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { printable } from '../terminal/paint.ts';
import { shortTime } from '../terminal/units.ts';

/** What happened to the fires that a hold delayed; `tasks`: the release named no policy. */
const releasedFires: Readonly<Record<(typeof misfirePolicies)[number] | 'tasks', string>> = {
  skip: 'was skipped (skip)',
  latest: 'ran once for each task (latest)',
  all: 'ran (all)',
  tasks: "followed each task's policy",
};

/** `svc hold`, `svc release`, `svc operations` */
export function addOperationsCommands(line: CommandLine): void {
  line.add(line.program, 'hold <reason...>', {
    description: 'stop fires and new runs until `svc release`; active runs continue',
    examples: ['hold moving the mail server'],
    run: async (session, _, words) => {
      const body = { reason: words.join(' ') };
      const done = await session.client.call((api) => api.operations.hold(body));
      session.answer(done, () => session.paint.warning(done.message));
    },
  });
  line.add(line.program, 'release', {
    description: 'end a hold; missed fires follow the misfire policies',
    options: {
      missed: choice('policy', 'the policy for the missed fires of all tasks', misfirePolicies),
    },
    examples: ['release', 'release --missed skip'],
    run: async (session, { missed }) => {
      const body = missed === undefined ? {} : { missed };
      const done = await session.client.call((api) => api.operations.release(body));
      session.answer(done, () => session.paint.good(done.message));
    },
  });
  line.add(line.program, 'operations', {
    description: 'show whether the service is on hold, since when and why',
    examples: ['operations'],
    run: async (session) => {
      const answer = await session.client.call((api) => api.operations.get());
      const { hold, released } = answer;
      session.answer(answer, () => {
        if (hold !== null) {
          const since = `on hold since ${shortTime(hold.since)}, by ${hold.by}`;
          return session.paint.warning(`${since}: ${printable(hold.reason)}`);
        }
        if (released === null) return 'not on hold';
        const last = `last released ${shortTime(released.at)}, by ${released.by}`;
        return `not on hold; ${last}: what was due meanwhile ${releasedFires[released.missed ?? 'tasks']}`;
      });
    },
  });
}
