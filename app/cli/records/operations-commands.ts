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

const nameOf = ({ by, by_name }: { by: string; by_name: string | null }): string =>
  printable(by_name ?? by);

/** `svc hold`, `svc release`, `svc operations` */
export function addOperationsCommands(line: CommandLine): void {
  line.add(line.program, 'hold <reason...>', {
    description: 'stop fires and new runs until `svc release`; active runs continue',
    examples: ['hold moving the mail server'],
    run: (session, _, words) =>
      session.show(
        (api) => api.operations.hold({ reason: words.join(' ') }),
        ({ message }) => session.paint.warning(message),
      ),
  });
  line.add(line.program, 'release', {
    description: 'end a hold; missed fires follow the misfire policies',
    options: {
      missed: choice('policy', 'the policy for the missed fires of all tasks', misfirePolicies),
    },
    examples: ['release', 'release --missed skip'],
    run: (session, { missed }) =>
      session.show(
        (api) => api.operations.release(missed === undefined ? {} : { missed }),
        ({ message }) => session.paint.good(message),
      ),
  });
  line.add(line.program, 'operations', {
    description: 'show whether the service is on hold, since when and why',
    examples: ['operations'],
    run: (session) =>
      session.show(
        (api) => api.operations.get(),
        ({ hold, released }) => {
          if (hold !== null) {
            const since = `on hold since ${shortTime(hold.since)}, by ${nameOf(hold)}`;
            return session.paint.warning(`${since}: ${printable(hold.reason)}`);
          }
          if (released === null) return 'not on hold';
          const last = `last released ${shortTime(released.at)}, by ${nameOf(released)}`;
          return `not on hold; ${last}: what was due meanwhile ${releasedFires[released.missed ?? 'tasks']}`;
        },
      ),
  });
}
