import type { Command } from 'commander';
import { addPaging, listAll, shownOf, type Paging } from '../calling/listing.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import {
  differenceOf,
  followRebuild,
  inShort,
  progressOf,
  readProjections,
  type ShownProjection,
} from './rebuild-follow.ts';
import type { Done } from '../calling/records.ts';
import type { Session } from '../calling/session.ts';
import { duration, shortTime } from '../terminal/times.ts';
import { part, rateOf, wholeNumberOf } from '../terminal/values.ts';

/** `svc projections …`, scope `ops` */
export function addProjectionCommands(line: CommandLine): Command {
  const group = line.group('projections', 'the views: how they are, and their rebuilds');
  const list = group.command('list').alias('ls').description('all views');
  line.does(list, ['projections list'], async (session) => {
    const projections = await readProjections(session);
    session.answer({ projections }, () =>
      session.table(
        [
          { title: 'NAME' },
          { title: 'VERSION', align: 'right' },
          { title: 'STATE' },
          { title: 'LAG', align: 'right' },
          { title: 'PARKED', align: 'right' },
          { title: 'REBUILD' },
          { title: 'BACK TO' },
        ],
        projections.map((each) => [
          each.name,
          each.version,
          each.state,
          // Of what nobody can read, nothing is behind.
          each.version === 0 ? '–' : duration(each.lag_seconds),
          each.parked,
          each.rebuild === null ? '' : inShort(each.rebuild),
          each.previous?.version ?? '',
        ]),
        'there is none',
      ),
    );
  });
  const status = group.command('status <name>').description('one view, and its rebuild');
  line.does(status, ['projections status runs'], async (session, _options, [name]) => {
    const [shown] = await readProjections(session, name ?? '');
    if (shown !== undefined) session.answer(shown, () => statusOf(session, shown));
  });
  addRebuild(line, group);
  for (const [verb, description] of [
    ['pause', 'lets a rebuild rest'],
    ['resume', 'lets a rebuild go on'],
    ['cancel', 'throws a rebuild away'],
  ] as const) {
    const command = group.command(`${verb} <name>`).description(description);
    line.does(command, [`projections ${verb} runs`], async (session, _options, [name]) => {
      const done = await session.client.post<Done>(`/projections/${part(name)}/${verb}`);
      session.answer(done, () => done.message);
    });
  }
  addSwitches(line, group);
  addParked(line, group);
  return group;
}

/** What lets reads go elsewhere: each order names the version that it is to end. */
function addSwitches(line: CommandLine, group: Command): void {
  for (const [verb, description] of [
    ['switch', 'lets reads go to a rebuilt view that waits for it'],
    ['rollback', 'lets reads go back to the version before'],
  ] as const) {
    const command = group
      .command(`${verb} <name>`)
      .description(description)
      .option(
        '--if-version <n>',
        'only if this version is read, as it was seen (the one that is read as the command begins)',
        wholeNumberOf(0, 999_999_999),
      );
    const examples = [`projections ${verb} runs --if-version 3`];
    type Options = { readonly ifVersion?: number };
    line.does<Options>(command, examples, async (session, { ifVersion }, [name = '']) => {
      const expected_version = ifVersion ?? (await readProjections(session, name))[0]?.version;
      const path = `/projections/${part(name)}/${verb}`;
      const done = await session.client.post<Done>(path, { body: { expected_version } });
      session.answer(done, () => done.message);
    });
  }
}

function addRebuild(line: CommandLine, group: Command): void {
  const rebuild = group
    .command('rebuild <name>')
    .description('makes the next version from the log, beside the one that is read')
    .option('--rate <n>', 'events a second at most', rateOf)
    .option('--manual', 'waits for `switch` once it is level')
    .option('--detach', 'does not wait for it');
  const examples = ['projections rebuild runs', 'projections rebuild runs --rate 20000 --manual'];
  type Options = { readonly rate?: number; readonly manual?: boolean; readonly detach?: boolean };
  line.does<Options>(rebuild, examples, async (session, options, [name = '']) => {
    const body = {
      switch: options.manual === true ? 'manual' : 'auto',
      ...(options.rate === undefined ? {} : { rate: options.rate }),
    };
    const done = await session.client.post<Done>(`/projections/${part(name)}/rebuild`, { body });
    const version = Number(done.details['version']);
    if (options.detach === true) {
      session.answer(done, () => `version ${version} is being made`);
      return;
    }
    const shown = await followRebuild(session, name, version);
    session.answer(shown, () => statusOf(session, shown));
  });
}

function addParked(line: CommandLine, group: Command): void {
  const parked = addPaging(
    group
      .command('parked <name>')
      .description('keys that are held back since an event could not be folded'),
  );
  type Parked = { key: string; stream: string; type: string; error: string };
  line.does<Paging>(parked, ['projections parked runs'], async (session, paging, [name]) => {
    const path = `/projections/${part(name)}/parked`;
    const page = await listAll<Parked>(session.client, path, {}, paging);
    session.answer(page, () => {
      const columns = [{ title: 'KEY' }, { title: 'EVENT' }, { title: 'ERROR', most: 80 }];
      const rows = page.items.map(({ key, type, error }) => [key, type, error].map(printable));
      return session.table(columns, rows, 'none is held back') + shownOf(session, page, 'keys');
    });
  });
  for (const [verb, description] of [
    ['retry', 'folds the event after all, and what followed for the key'],
    ['skip', 'leaves the event out, and folds what followed for the key'],
  ] as const) {
    const command = group.command(`${verb} <name> <key>`).description(description);
    const examples = [`projections ${verb} runs 01a1fc11-0505-734a-8920-9c4c55a40f65`];
    line.does(command, examples, async (session, _options, [name, key]) => {
      const path = `/projections/${part(name)}/parked/${part(key)}/${verb}`;
      const done = await session.client.post<Done>(path);
      session.answer(done, () => printable(done.message));
      return done.details['error'] === null ? 0 : 1;
    });
  }
}

/** Which version reads go to. Before the first is made there may be one of an older release, in its shape. */
function readOf({ version, position }: ShownProjection): string {
  if (version > 0) return `version ${version} is read`;
  return position === '' ? 'nothing can be read yet' : 'what an older release has made is read';
}

function statusOf(session: Session, shown: ShownProjection): string {
  const { rebuild, previous, detail } = shown;
  const lag = shown.caught_up ? 'level with the log' : `${duration(shown.lag_seconds)} behind`;
  const parked =
    shown.parked === 0
      ? []
      : [shown.parked === 1 ? 'a key is held back' : `${shown.parked} keys are held back`];
  const back =
    previous === null
      ? []
      : [
          `version ${previous.version} can be gone back to until ${shortTime(previous.until)}: ` +
            `svc projections rollback ${shown.name} --if-version ${shown.version}`,
        ];
  const making =
    rebuild === null
      ? []
      : [
          `version ${rebuild.version}: ${progressOf(rebuild)}`,
          ...(rebuild.detail === null ? [] : [session.paint.bad(printable(rebuild.detail))]),
          ...(rebuild.comparison === null ? [] : [differenceOf(session, rebuild)]),
        ];
  return [
    `${shown.name}: ${readOf(shown)}, ${shown.state}, ${lag}`,
    ...(detail === null ? [] : [session.paint.bad(printable(detail))]),
    ...parked,
    ...back,
    ...making,
  ].join('\n');
}
