import type { Command } from 'commander';
import { addList } from '../calling/lists.ts';
import type { Done } from '../calling/records.ts';
import type { RecordColumn, Session } from '../calling/session.ts';
import { flag, positiveNumber, wholeNumber } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { printable } from '../terminal/paint.ts';
import { duration, shortTime } from '../terminal/units.ts';
import { pathSegment } from '../terminal/values.ts';
import {
  differenceOf,
  followRebuild,
  progressOf,
  readProjection,
  readProjections,
  shortProgressOf,
  type ShownProjection,
} from './follow-rebuild.ts';

/** `svc projections …`, scope `ops` */
export function addProjectionCommands(line: CommandLine): void {
  const group = line.group('projections', 'list and rebuild the views (scope ops)');
  line.add(group, 'list', {
    description: 'list all views',
    examples: ['projections list'],
    run: async (session) => {
      const projections = await readProjections(session);
      session.answer({ projections }, () =>
        session.table<ShownProjection>(
          [
            { title: 'NAME', cell: ({ name }) => name },
            { title: 'VERSION', align: 'right', cell: ({ version }) => version },
            { title: 'STATE', cell: ({ state }) => state },
            {
              title: 'LAG',
              align: 'right',
              // An unreadable view has no lag.
              cell: (each) => (each.version === 0 ? '–' : duration(each.lag_seconds)),
            },
            { title: 'PARKED', align: 'right', cell: ({ parked }) => parked },
            { title: 'REBUILD', cell: ({ rebuild }) => rebuild && shortProgressOf(rebuild) },
            { title: 'ROLLBACK', cell: ({ previous }) => previous?.version ?? null },
          ],
          projections,
          'no views',
        ),
      );
    },
  });
  line.add(group, 'status <name>', {
    description: 'show a view and its rebuild',
    examples: ['projections status runs'],
    run: async (session, _, [name = '']) => {
      const shown = await readProjection(session, name);
      session.answer(shown, () => statusOf(session, shown));
    },
  });
  addRebuild(line, group);
  for (const [verb, description] of [
    ['pause', 'pause a rebuild'],
    ['resume', 'resume a rebuild'],
    ['cancel', 'discard a rebuild'],
  ] as const) {
    line.add(group, `${verb} <name>`, {
      description,
      examples: [`projections ${verb} runs`],
      run: (session, _, [name]) => post(session, `/projections/${pathSegment(name)}/${verb}`),
    });
  }
  for (const [verb, description] of [
    ['switch', 'make a waiting rebuild live'],
    ['rollback', 'make the previous version live again'],
  ] as const) {
    line.add(group, `${verb} <name>`, {
      description,
      options: {
        ifVersion: wholeNumber('n', 'only if this version is live', 0, 999_999_999),
      },
      examples: [`projections ${verb} runs --if-version 3`],
      run: async (session, { ifVersion }, [name = '']) => {
        // Without the option, the version that is live as the command begins.
        const expected_version = ifVersion ?? (await readProjection(session, name)).version;
        await post(session, `/projections/${pathSegment(name)}/${verb}`, { expected_version });
      },
    });
  }
  addParked(line, group);
}

const post = (session: Session, path: string, body?: object): Promise<void> =>
  session.done((api) => api.request<Done>({ method: 'POST', path, body }));

function addRebuild(line: CommandLine, group: Command): void {
  line.add(group, 'rebuild <name>', {
    description: 'build the next version from the log beside the live one',
    options: {
      rate: positiveNumber('n', 'most events a second'),
      manual: flag('wait for `switch` when it has caught up'),
      detach: flag('do not wait for it'),
    },
    examples: ['projections rebuild runs', 'projections rebuild runs --rate 20000 --manual'],
    run: async (session, { rate, manual = false, detach = false }, [name = '']) => {
      const body = { switch: manual ? 'manual' : 'auto', ...(rate === undefined ? {} : { rate }) };
      const path = `/projections/${pathSegment(name)}/rebuild`;
      const done = await session.client.post<Done>(path, { body });
      const version = Number(done.details['version']);
      if (detach) {
        session.answer(done, () => `building version ${version}`);
        return;
      }
      const shown = await followRebuild(session, name, version);
      session.answer(shown, () => statusOf(session, shown));
    },
  });
}

interface Parked {
  readonly key: string;
  readonly stream: string;
  readonly type: string;
  readonly error: string;
}

function addParked(line: CommandLine, group: Command): void {
  addList(line, group, 'parked <name>', {
    description: 'list keys that are parked because an event could not be applied',
    examples: ['projections parked runs'],
    path: ([name]) => `/projections/${pathSegment(name)}/parked`,
    columns: (): readonly RecordColumn<Parked>[] => [
      { title: 'KEY', cell: ({ key }) => key },
      { title: 'EVENT', cell: ({ type }) => type },
      { title: 'ERROR', maxWidth: 80, cell: ({ error }) => error },
    ],
    noun: 'keys',
    none: 'no parked keys',
  });
  for (const [verb, description] of [
    ['retry', "apply the event again, and the key's later events"],
    ['skip', "skip the event, and apply the key's later events"],
  ] as const) {
    line.add(group, `${verb} <name> <key>`, {
      description,
      examples: [`projections ${verb} runs 01a1fc11-0505-734a-8920-9c4c55a40f65`],
      run: async (session, _, [name, key]) => {
        const path = `/projections/${pathSegment(name)}/parked/${pathSegment(key)}/${verb}`;
        const done = await session.client.post<Done>(path);
        session.answer(done, () => printable(done.message));
        return done.details['error'] === null ? 0 : 1;
      },
    });
  }
}

/** The live version. Before the first is built, that of an older release can be live. */
function liveVersion({ version, position }: ShownProjection): string {
  if (version > 0) return `version ${version} is live`;
  return position === '' ? 'no version is live yet' : "an older release's version is live";
}

function statusOf(session: Session, shown: ShownProjection): string {
  const { paint } = session;
  const { name, version, rebuild, previous, detail, parked } = shown;
  const lag = shown.caught_up ? 'caught up' : `${duration(shown.lag_seconds)} behind`;
  const lines = [`${name}: ${liveVersion(shown)}, ${shown.state}, ${lag}`];
  if (detail !== null) lines.push(paint.bad(printable(detail)));
  if (parked > 0) lines.push(parked === 1 ? '1 key is parked' : `${parked} keys are parked`);
  if (previous !== null) {
    const command = `svc projections rollback ${name} --if-version ${version}`;
    const until = `can be restored until ${shortTime(previous.until)}`;
    lines.push(`version ${previous.version} ${until}: ${command}`);
  }
  if (rebuild !== null) {
    lines.push(`version ${rebuild.version}: ${progressOf(rebuild)}`);
    if (rebuild.detail !== null) lines.push(paint.bad(printable(rebuild.detail)));
    if (rebuild.comparison !== null) lines.push(differenceOf(session, rebuild.comparison));
  }
  return lines.join('\n');
}
