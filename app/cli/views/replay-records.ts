import type { Command } from 'commander';
import { changesBetween, type Change } from '../../../domain/differences.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { ServiceFault } from '../calling/client.ts';
import { CommandFault, exitCodes, usageFault } from '../calling/faults.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';
import { part } from '../terminal/values.ts';

/** What can be looked at as of a moment, and where the interface has it. */
const kinds = { task: '/tasks', run: '/runs', agent: '/agents' } as const;
type Kind = keyof typeof kinds;

/** The present, in place of a moment. */
const NOW = 'now';

/** Characters of a value in a column. */
const MOST = 60;

interface Moments {
  readonly at?: string;
  readonly and?: string;
}

/** `svc replay task|run|agent <id> --at … [--and …]`, scope `audit:read` beside that of the record */
export function addRecordReplays(line: CommandLine, group: Command): void {
  for (const kind of Object.keys(kinds) as Kind[]) {
    const command = group
      .command(`${kind} <id>`)
      .description(`the ${kind} as it was at a moment, and what differed at another`)
      .option('--at <moment>', 'an instant, or a position of the log')
      .option('--and <moment>', 'another moment, or `now`; shows what differs');
    const examples = [
      `replay ${kind} 01a1fc11-… --at 2026-11-20T08:00Z`,
      `replay ${kind} 01a1fc11-… --at 2026-11-20T08:00Z --and now`,
    ];
    line.does<Moments>(command, examples, async (session, { at, and }, [id = '']) => {
      if (at === undefined) throw usageFault('--at says which moment');
      if (and === undefined) {
        const record = await recordAt(session, kind, id, at);
        if (record === null) throw wasNot(kind, id, at);
        session.answer(record, () => fieldsOf(session, record));
        return;
      }
      const [before, after] = await Promise.all([
        recordAt(session, kind, id, at),
        recordAt(session, kind, id, and),
      ]);
      if (before === null && after === null) throw wasNot(kind, id, `${at} and ${and}`);
      const changes = changesBetween(before, after);
      session.answer({ at: before, and: after, changes }, () =>
        differences(session, { at, and }, changes),
      );
    });
  }
}

/** The record, folded up to a moment; null where it was not there. */
async function recordAt(
  { client }: Session,
  kind: Kind,
  id: string,
  moment: string,
): Promise<JsonObject | null> {
  const query = moment === NOW ? {} : { as_of: moment };
  try {
    return await client.get<JsonObject>(`${kinds[kind]}/${part(id)}`, { query });
  } catch (error) {
    if (error instanceof ServiceFault && error.status === 404) return null;
    throw error;
  }
}

function wasNot(kind: Kind, id: string, moments: string): CommandFault {
  return new CommandFault(exitCodes.notFound, `there was no ${kind} ${id} at ${moments}`);
}

function fieldsOf(session: Session, record: JsonObject): string {
  return session.fields(
    Object.entries(record).map(([name, value]) => [
      name,
      typeof value === 'string' || value === null ? value : JSON.stringify(value),
    ]),
  );
}

function differences(
  session: Session,
  { at, and }: Required<Moments>,
  changes: readonly Change[],
): string {
  const { paint } = session;
  return session.table(
    [
      { title: 'FIELD' },
      { title: `AT ${at}`, most: MOST, paint: (padded) => paint.bad(padded) },
      { title: `AT ${and}`, most: MOST, paint: (padded) => paint.good(padded) },
    ],
    changes.map(({ path, before, after }) => [path, written(before), written(after)]),
    'nothing differs',
  );
}

const written = (value: Change['before']): string => (value === null ? '–' : JSON.stringify(value));
