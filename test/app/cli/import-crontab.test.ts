import { expect } from 'chai';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TaskRecord } from '../../../app/cli/calling/records.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc, type Called } from './command-line.ts';

interface ImportAnswer {
  readonly done: boolean;
  readonly tasks: readonly {
    readonly line: number;
    readonly name: string;
    readonly task_id: string | null;
    readonly exists: boolean;
    readonly schedule_text: string;
  }[];
  readonly missing: readonly { readonly task_id: string; readonly canceled: boolean }[];
  readonly bad_lines: readonly { readonly line: number; readonly issue: string }[];
  readonly warnings: readonly string[];
}

describe('svc import crontab', () => {
  const api = useRunningApi();
  let sets = 0;
  const newSet = (): string => `cron-${(sets += 1)}`;

  const call = (set: string, input: string, ...words: string[]): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(['import', 'crontab', '-', '--set', set, ...words], { env, input, columns: 200 });
  };
  const answer = ({ json }: Called): ImportAnswer => json as unknown as ImportAnswer;

  async function tasksOf(set: string): Promise<readonly TaskRecord[]> {
    const listed = await api().admin.client.get(`/tasks?tag=apply:${set}&limit=200`);
    return listed.at('items') as readonly TaskRecord[];
  }

  const two = '# Nightly backup\n30 2 * * * backup "${HOME}"\n@hourly tidy --all\n';

  it('shows the tasks and creates nothing without --yes', async () => {
    const set = newSet();
    const shown = await call(set, two, '--timezone', 'Europe/Berlin');
    expect(shown.code).to.equal(2);
    expect(shown.err).to.include('nothing was done; add --yes');
    expect(shown.out).to.match(/^LINE +TASK +SCHEDULE +ACTION +COMMAND$/m);
    expect(shown.out).to.match(
      /^2 +\+ backup-HOME-[0-9a-f]{8} +at 02:30, every day, Europe\/Berlin +logs it, paused +backup "\$\{HOME\}"$/m,
    );
    expect(shown.out).to.include(`${set}: 2 to create, 0 unchanged`);
    expect((await call(set, two, '--dry-run', '--yes')).code).to.equal(0);
    expect(await tasksOf(set)).to.deep.equal([]);
  });

  it('creates paused tasks that log the command and names the step to replace', async () => {
    const set = newSet();
    const done = await call(set, two, '--timezone', 'Europe/Berlin', '--yes');
    expect([done.code, done.out]).to.satisfy(
      ([code, out]: [number, string]) => code === 0 && out.includes(`${set}: 2 created`),
    );
    expect(done.err).to.include('replace the step "command"').and.include('svc tasks resume');
    const tasks = await tasksOf(set);
    const backup = tasks.find(({ title }) => title === 'Nightly backup');
    expect(backup).to.deep.include({
      description: 'Nightly backup\nFrom a crontab: backup "${HOME}"',
      status: 'paused',
      schedule_kind: 'cron',
      schedule_expr: '30 2 * * *',
      timezone: 'Europe/Berlin',
      overlap_policy: 'allow',
      misfire_policy: 'skip',
      max_retries: 0,
      payload: {
        params: { job: { command: 'backup "${HOME}"' } },
        pipeline: [{ id: 'command', uses: 'log', with: { message: '${params.job.command}' } }],
      },
    });
    expect(tasks.find(({ title }) => title === 'tidy --all')?.schedule_text).to.equal(
      'every hour, Europe/Berlin',
    );
  });

  it('posts the command, its input and its user with --post', async () => {
    const set = newSet();
    const url = 'https://jobs.example/run';
    const line = 'CRON_TZ=Asia/Tokyo\n0 9 * * 1-5 root mail boss%Hello\n';
    const done = await call(set, line, '--system', '--post', url, '--yes', '--json');
    expect([done.code, answer(done).warnings]).to.deep.equal([0, []]);
    const [task] = await tasksOf(set);
    expect(task).to.deep.include({
      status: 'active',
      timezone: 'Asia/Tokyo',
      description: 'From a crontab (as root): mail boss',
      payload: {
        params: { job: { command: 'mail boss', stdin: 'Hello', user: 'root' } },
        pipeline: [
          {
            id: 'command',
            uses: 'http.request',
            with: { method: 'POST', url, body: '${params.job}' },
          },
        ],
      },
    });
  });

  it('changes nothing when it is repeated, not even edited tasks', async () => {
    const set = newSet();
    await call(set, two, '--yes');
    const [first] = await tasksOf(set);
    await api().admin.client.put(`/tasks/${first?.id ?? ''}`, { title: 'Mine', max_retries: 3 });
    await api().admin.client.post(`/tasks/${first?.id ?? ''}/resume`);
    const before = await tasksOf(set);
    // The line number and the comment above it do not identify a job.
    const moved = '@hourly  tidy --all\n\n30 2 * * *   backup "${HOME}"\n';
    const again = await call(set, moved, '--yes', '--json');
    expect(again.code, again.err).to.equal(0);
    expect(answer(again).tasks.map(({ exists }) => exists)).to.deep.equal([true, true]);
    expect(await tasksOf(set)).to.deep.equal(before);
    expect((await call(set, moved)).code).to.equal(0);
  });

  it('distinguishes equal lines', async () => {
    const set = newSet();
    const done = await call(set, '0 1 * * * a\n0 1 * * * a\n', '--yes', '--json');
    expect(done.code, done.err).to.equal(0);
    const names = answer(done).tasks.map(({ name }) => name);
    expect(names[1]).to.equal(`${names[0] ?? ''}-2`);
    expect(await tasksOf(set)).to.have.lengthOf(2);
  });

  it('cancels the task of a line that is gone only with --cancel-missing', async () => {
    const set = newSet();
    await call(set, two, '--yes');
    const rest = '@hourly tidy --all\n';
    const kept = await call(set, rest, '--yes');
    expect(kept.out).to.include('not in the file (not canceled; use --cancel-missing)');
    const statuses = async () => (await tasksOf(set)).map(({ status }) => status).sort();
    expect(await statuses()).to.deep.equal(['paused', 'paused']);
    expect((await call(set, rest, '--cancel-missing')).code).to.equal(2);
    const gone = await call(set, rest, '--cancel-missing', '--yes', '--json');
    expect(answer(gone).missing.map(({ canceled }) => canceled)).to.deep.equal([true]);
    expect(await statuses()).to.deep.equal(['canceled', 'paused']);
  });

  it('creates nothing if a line cannot be imported, except with --skip-bad', async () => {
    const set = newSet();
    const bad = `${two}@reboot start\n0 0 30 2 * never\n`;
    const refused = await call(set, bad, '--yes');
    expect(refused.code).to.equal(2);
    expect(refused.out).to.match(/line 4: @reboot has no equivalent/);
    expect(refused.out).to.match(/line 5: schedule_expr: .*; correct the line/);
    expect(refused.err).to.include('2 lines cannot be imported').and.include('--skip-bad');
    expect(await tasksOf(set)).to.deep.equal([]);
    const done = await call(set, bad, '--yes', '--skip-bad', '--json');
    expect(done.code, done.err).to.equal(0);
    expect(answer(done).bad_lines.map(({ line }) => line)).to.deep.equal([4, 5]);
    expect(await tasksOf(set)).to.have.lengthOf(2);
  });

  it("uses this machine's zone by default and keeps that of an existing task", async () => {
    const set = newSet();
    const here = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    const first = await call(set, '0 1 * * * a\n', '--yes', '--json');
    expect(answer(first).tasks[0]?.schedule_text).to.match(new RegExp(`, ${here}$`));
    const other = await call(set, '0 1 * * * a\n', '--yes', '--timezone', 'Asia/Kolkata');
    expect(other.err).to.match(/line 1: its task keeps the time zone .* not Asia\/Kolkata/);
    expect(await tasksOf(set)).to.have.lengthOf(1);
  });

  it('names variables that are not imported', async () => {
    const shown = await call(newSet(), `MAILTO=ops\nPATH=/bin\n${two}`, '--dry-run');
    expect(shown.err).to.include('MAILTO, PATH: variables are not imported');
  });

  it('rejects an invalid zone or URL and a missing file', async () => {
    const cases: readonly (readonly [words: readonly string[], message: string])[] = [
      [['--timezone', 'Mars'], '--timezone: "Mars" is not a time zone'],
      [['--post', 'ftp://x'], '--post: must be an http or https URL, got ftp://x'],
    ];
    for (const [words, message] of cases) {
      const { code, err } = await call(newSet(), two, ...words, '--yes');
      expect([code, err.includes(message)], err).to.deep.equal([2, true]);
    }
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    const away = await svc(['import', 'crontab', '/nowhere/crontab'], { env });
    expect([away.code, away.err.includes("can't be read")]).to.deep.equal([2, true]);
  });

  it('is distinguished from an export in a folder named crontab', async () => {
    const nothing = await svc(['import', 'crontab'], { env: {} });
    expect(nothing.code).to.equal(2);
    expect(nothing.err).to.include('an export in a folder of that name is ./crontab');
    const place = await makeTemporaryDirectory();
    try {
      const folder = join(place.path, 'crontab');
      mkdirSync(folder);
      const env = { SVC_DATA_DIR: join(place.path, 'data') };
      const exported = await svc(['import', `${place.path}/./crontab`], { env });
      expect(exported.err).to.include('manifest');
    } finally {
      await place.remove();
    }
  });
});
