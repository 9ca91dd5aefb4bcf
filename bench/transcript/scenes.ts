import { describeReads, readWhile } from './reads.ts';
import type { Page } from './page.ts';
import type { Typed } from './terminal.ts';
import type { ApiClient } from '../../test/support/api-client.ts';

/** The tools of the scenes. */
export interface Stage {
  readonly page: Page;
  /** Runs a command on the store. */
  readonly type: (command: string) => Promise<Typed>;
  /** A client with the scope `admin` of the service on the store. */
  readonly admin: ApiClient;
  /** A task that was changed, failed, and was corrected. */
  readonly report: string;
  /** Starts a service on the restored backup and waits until it listens. */
  readonly onRestored: () => Promise<{ readonly url: string; stop(): Promise<void> }>;
  /** Writes an unreadable event into a run's stream. Returns the run's id. */
  readonly poison: () => Promise<string>;
}

/** Runs commands and shows them in one block. */
async function play(
  { page, type }: Stage,
  commands: readonly string[],
  lines: { readonly head?: number; readonly tail?: number } = {},
): Promise<readonly Typed[]> {
  const typed: Typed[] = [];
  for (const command of commands) typed.push(await type(command));
  page.show(typed, lines);
  return typed;
}

/** Rebuild, switch and rollback, with reads in the meantime. */
async function views(stage: Stage): Promise<void> {
  const { page, admin } = stage;
  page.heading('Views: rebuild, switch, rollback');
  await play(stage, ['svc projections list', 'svc projections status runs']);
  page.say('A rebuild with a rate limit is paused, resumed and canceled:');
  await play(stage, [
    'svc projections rebuild runs --rate 20000 --detach && sleep 3',
    'svc projections status runs',
    'svc projections pause runs && sleep 1 && svc projections status runs',
    'svc projections resume runs && sleep 1 && svc projections status runs',
    'svc projections cancel runs',
  ]);
  const before = await readWhile(admin, () => new Promise((done) => setTimeout(done, 5_000)));
  page.say('A rebuild at full speed waits for the operator to switch:');
  const rebuilt: Typed[] = [];
  const during = await readWhile(admin, async () => {
    rebuilt.push(await stage.type('svc projections rebuild runs --manual'));
  });
  page.show(rebuilt);
  page.say(
    `Meanwhile two connections read: ${describeReads(during)}. In the five seconds before the rebuild: ${describeReads(before)}.`,
  );
  const around = await readWhile(admin, () =>
    play(stage, [
      'svc projections switch runs',
      'svc projections status runs',
      'svc projections rollback runs',
      'svc projections status runs',
    ]).then(() => {}),
  );
  page.say(`During the switch and the rollback: ${describeReads(around)}.`);
  await play(stage, [
    `svc streams show projection-runs | tail -4`,
    'for view in agents tasks due topics published statistics backfills webhooks audit; do svc projections rebuild $view 2>/dev/null | head -1; done',
  ]);
}

/** A shell expression for a field of a list's last item. */
const lastOf = (list: string, field: string): string =>
  `$(svc ${list} --json | node -p 'const all = JSON.parse(require("fs").readFileSync(0)); (all.items ?? all).at(-1).${field}')`;

/** Records and whole views as of a time. */
async function past(stage: Stage): Promise<void> {
  const { page, report } = stage;
  page.heading('The past');
  page.say(
    'This task was changed, then failed, and was corrected. `$failed` is the time of its first failure, `$run` that run, `$admin` the first agent.',
  );
  const failures = `runs list --task ${report} --state failed --all`;
  const names = {
    failed: lastOf(failures, 'started_at'),
    run: lastOf(failures, 'id'),
    admin: lastOf('agents list', 'id'),
  };
  const set: string[] = [];
  for (const [name, command] of Object.entries(names)) {
    const { output } = await stage.type(`echo ${command}`);
    set.push(`${name}=${output.trim()}`);
  }
  const typed: Typed[] = [];
  for (const command of [
    `svc replay task ${report} --at "$failed" --and now`,
    'svc replay run "$run" --at "$failed" --and now',
    'svc replay agent "$admin" --at "$failed"',
    `svc tasks show ${report} --as-of "$failed" | head -12`,
    `svc tasks history ${report} | tail -11`,
    'svc replay --until "$failed" --into before',
    'svc replay list',
    'svc runs list --view before --limit 3',
    'svc stats --view before --days 1',
    'svc stats --days 1',
    'svc replay drop before',
  ]) {
    const each = await stage.type(`${set.join('; ')}; ${command}`);
    typed.push({ ...each, command });
  }
  page.show(typed, { head: 16, tail: 3 });
  const { output: now } = await stage.type('date -u +%FT%TZ');
  page.say('All views as of now, which includes the whole log:');
  await play(stage, [
    `svc replay --until ${now.trim()} --into lately`,
    'svc stats --view lately --days 1 | head -3',
    'svc replay drop lately',
  ]);
}

/** The audit and the log. */
async function audit(stage: Stage): Promise<void> {
  const { page, report } = stage;
  page.heading('Who did what');
  await play(stage, [
    'svc audit --limit 5',
    'svc audit --type CommandRefused',
    `svc audit --stream task-${report}`,
    'svc audit --actor service --stream retention',
    'svc streams list fires- --limit 3',
    `svc streams show task-${report} | head -3`,
    'svc streams show topic-orders.placed --direction backwards --limit 2',
  ]);
  page.say(
    'These commands follow until they are interrupted, here by `timeout`. Meanwhile a task is paused and resumed:',
  );
  await play(stage, [
    `(sleep 1; svc --reason 'a look at the audit' tasks pause ${report}; svc tasks resume ${report}) & timeout -s INT 4 svc audit --follow; wait`,
    `timeout -s INT 3 svc streams tail task-${report} --limit 2`,
    `svc events tail --topic orders.placed --count 2`,
  ]);
}

/** Rows for other tools. */
async function rows(stage: Stage): Promise<void> {
  const { page } = stage;
  page.heading('Rows for other tools');
  await play(stage, [
    'svc export --format ndjson --output events.ndjson && wc -l < events.ndjson',
    'svc export --format csv --of runs --output runs.csv && wc -l < runs.csv && head -2 runs.csv',
    `svc export --format ndjson --of runs | table --by 'state=row.state' --by 'trigger=row.trigger' --show 'runs=count()' --show 'p50 ms=p50(ms(row.started_at, row.finished_at))' --show 'p95 ms=p95(ms(row.started_at, row.finished_at))'`,
    `svc export --format ndjson --type RunFailed | table --by 'error=row.data.error' --show 'runs=count()'`,
  ]);
}

/** Hold, backlog, release. */
async function hold(stage: Stage): Promise<void> {
  const { page } = stage;
  page.heading('Hold');
  const { output } = await stage.type(`echo ${lastOf('tasks list --search Heartbeat', 'id')}`);
  page.say('A task that fires each second is resumed, and then the service is held.');
  await play(stage, [
    `svc tasks resume ${output.trim()}`,
    'svc hold the database is moved',
    'sleep 5; svc operations',
    'svc health',
    'svc owed',
    'svc release --missed=latest',
    'sleep 2; svc operations',
    `svc streams show fires-${output.trim()} --direction backwards --limit 4`,
  ]);
}

/** Backup, restore, export, import, doctor. */
async function store(stage: Stage): Promise<void> {
  const { page } = stage;
  page.heading('The store');
  await play(stage, ['svc doctor']);
  page.say('A backup of the running service is restored into an empty folder:');
  await play(stage, [
    'svc backup backup',
    'ls backup; cat backup/manifest.json | head -12',
    'SVC_DATA_DIR=restored svc restore backup',
    'SVC_DATA_DIR=restored svc owed',
    'svc restore backup',
  ]);
  page.say(
    'A service starts on the restored store, at the address `$restored`. While it builds its views:',
  );
  const restored = await stage.onRestored();
  const task = (await stage.type(`echo ${lastOf('tasks list --search Heartbeat', 'id')}`)).output;
  const typed: Typed[] = [];
  for (const command of [
    'svc --url "$restored" operations',
    'svc --url "$restored" health | tail -5',
    `svc --url "$restored" streams show fires-${task.trim()} --direction backwards --limit 1`,
    'svc --url "$restored" release --missed=skip && sleep 3',
    `svc --url "$restored" streams show fires-${task.trim()} --direction backwards --limit 3`,
  ]) {
    typed.push({ ...(await stage.type(`restored=${restored.url}; ${command}`)), command });
  }
  page.show(typed);
  await restored.stop();
  page.say('From one store to another:');
  await play(stage, [
    'svc export moved',
    'SVC_DATA_DIR=other svc import moved',
    'SVC_DATA_DIR=other svc export again',
    'SVC_DATA_DIR=other svc import moved | head -2',
    'SVC_DATA_DIR=other svc doctor --quick',
  ]);
}

/** An unreadable event, in the live view and in a rebuild. */
async function poisoned(stage: Stage): Promise<void> {
  const { page, poison } = stage;
  page.heading('An unreadable event');
  page.say('The log receives an event with truncated data, as from a damaged disk.');
  const run = await poison();
  await play(stage, [
    'sleep 2; svc projections list | head -5',
    'svc projections parked runs',
    `svc projections retry runs ${run}`,
    `svc projections skip runs ${run}`,
    'svc projections rebuild runs',
    'svc doctor | grep -A1 -E "fault|warn"',
  ]);
}

/** All scenes, in their order. */
export const scenes = { views, past, audit, rows, hold, store, poisoned };
