import type { Command } from 'commander';
import { changesBetween, type Change } from '../../../domain/record-changes.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { ServiceError } from '../calling/client.ts';
import { CommandError, exitCodes, usageError } from '../calling/command-errors.ts';
import type { Session } from '../calling/session.ts';
import { text } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { pathSegment } from '../terminal/values.ts';

/** Records by their paths in the interface. */
const paths = { task: '/tasks', run: '/runs', agent: '/agents' } as const;
type Kind = keyof typeof paths;

/** Most characters of a value in a column. */
const MAX_VALUE_LENGTH = 60;

/** `svc replay task|run|agent <id> --at … [--and …]`, scope `audit:read` beside that of the record */
export function addRecordReplays(line: CommandLine, group: Command): void {
  for (const kind of Object.keys(paths) as Kind[]) {
    line.add(group, `${kind} <id>`, {
      description: `show the ${kind} as of a time, or the changes between two times`,
      options: {
        at: text('time', 'an instant or a log position'),
        and: text('time', 'a second time, or `now`; shows the changes'),
      },
      examples: [
        `replay ${kind} 01a1fc11-… --at 2026-11-20T08:00Z`,
        `replay ${kind} 01a1fc11-… --at 2026-11-20T08:00Z --and now`,
      ],
      run: async (session, { at, and }, [id = '']) => {
        if (at === undefined) throw usageError('--at is missing');
        const before = await recordAt(session, kind, id, at);
        if (and === undefined) {
          if (before === null) throw noRecord(kind, id, at);
          session.answer(before, () => fieldsOf(session, before));
          return;
        }
        const after = await recordAt(session, kind, id, and);
        if (before === null && after === null) throw noRecord(kind, id, `${at} and ${and}`);
        const changes = changesBetween(before, after);
        session.answer({ at: before, and: after, changes }, () => {
          const { paint } = session;
          return session.table<Change>(
            [
              { title: 'FIELD', cell: ({ path }) => path },
              {
                title: `AT ${at}`,
                maxWidth: MAX_VALUE_LENGTH,
                paint: paint.bad,
                cell: (change) => format(change.before),
              },
              {
                title: `AT ${and}`,
                maxWidth: MAX_VALUE_LENGTH,
                paint: paint.good,
                cell: (change) => format(change.after),
              },
            ],
            changes,
            'no changes',
          );
        });
      },
    });
  }
}

/** The record as of a time; null if it did not exist. */
async function recordAt(
  { client }: Session,
  kind: Kind,
  id: string,
  time: string,
): Promise<JsonObject | null> {
  const query = time === 'now' ? {} : { as_of: time };
  try {
    return await client.get<JsonObject>(`${paths[kind]}/${pathSegment(id)}`, { query });
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return null;
    throw error;
  }
}

const noRecord = (kind: Kind, id: string, times: string): CommandError =>
  new CommandError(exitCodes.notFound, `there was no ${kind} ${id} at ${times}`);

const fieldsOf = (session: Session, record: JsonObject): string =>
  session.fields(
    Object.entries(record).map(([name, value]) => [
      name,
      typeof value === 'string' || value === null ? value : JSON.stringify(value),
    ]),
  );

const format = (value: Change['before']): string => (value === null ? '–' : JSON.stringify(value));
