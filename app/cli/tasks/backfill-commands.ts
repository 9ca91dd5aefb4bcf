import type { Command } from 'commander';
import { addPaging, listAll, shownOf, type Paging } from '../calling/listing.ts';
import type { BackfillRecord, Done } from '../calling/records.ts';
import type { CommandLine } from '../program.ts';
import { paintState } from '../terminal/paint.ts';
import { shortTime } from '../terminal/times.ts';
import { part } from '../terminal/values.ts';

/** `svc backfills …`: what became of those that `svc tasks backfill` asked for. */
export function addBackfillCommands(line: CommandLine): void {
  const group = line.group('backfills', 'lists, shows and cancels backfills of tasks');
  addList(line, group);
  const show = group.command('show <id>').description('shows a backfill: how far it is');
  line.does(show, ['backfills show 01a1fc6d-…'], async (session, _, [id = '']) => {
    const backfill = await session.client.ask((api) => api.backfills.get(id));
    session.answer(backfill, () => {
      const { canceled_by } = backfill;
      return session.fields([
        ['id', backfill.id],
        ['task', `${backfill.task_id}, revision ${backfill.task_revision}`],
        ['state', canceled_by === null ? backfill.state : `${backfill.state} (${canceled_by})`],
        ['from', shortTime(backfill.from)],
        ['to', shortTime(backfill.to)],
        ['times', `${backfill.total} (${backfill.only})`],
        ['decided', backfill.up_to === null ? 'none' : `up to ${shortTime(backfill.up_to)}`],
        ['requested', `${backfill.requested} runs; ${backfill.existing} times left out`],
        ['unfinished', `${backfill.unfinished}, at most ${backfill.concurrency} at a time`],
        ['succeeded', String(backfill.succeeded)],
        ['failed', String(backfill.failed)],
        ['canceled', String(backfill.canceled)],
        ['skipped', String(backfill.skipped)],
        ['by', backfill.requested_by],
        ['created', shortTime(backfill.created_at)],
        ['finished', shortTime(backfill.finished_at)],
      ]);
    });
  });
  const cancel = group
    .command('cancel <id>')
    .description('requests no more runs of it, and ends those that have not ended');
  line.does(cancel, ['backfills cancel 01a1fc6d-…'], async (session, _, [id]) => {
    const done = await session.client.post<Done>(`/backfills/${part(id)}/cancel`);
    session.answer(done, () => done.message);
  });
}

function addList(line: CommandLine, group: Command): void {
  const list = group
    .command('list <task>')
    .alias('ls')
    .description('lists the backfills of a task, newest first');
  addPaging(list);
  line.does<Paging>(list, ['backfills list 01a1fc11-…'], async (session, options, [task]) => {
    const path = `/tasks/${part(task)}/backfills`;
    const page = await listAll<BackfillRecord>(session.client, path, {}, options);
    session.answer(page, () => {
      const shown = session.table(
        [
          { title: 'ID' },
          { title: 'STATE', paint: (text, state) => paintState(session.paint, state, text) },
          { title: 'FROM' },
          { title: 'TO' },
          { title: 'TIMES', align: 'right' },
          { title: 'REQUESTED', align: 'right' },
          { title: 'UNFINISHED', align: 'right' },
          { title: 'FAILED', align: 'right' },
        ],
        page.items.map((each) => [
          each.id,
          each.state,
          shortTime(each.from),
          shortTime(each.to),
          each.total,
          each.requested,
          each.unfinished,
          each.failed,
        ]),
        'no backfills',
      );
      return `${shown}${shownOf(session, page, 'backfills')}`;
    });
  });
}
