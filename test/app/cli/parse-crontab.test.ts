import { expect } from 'chai';
import { parseCrontab, type CrontabJob } from '../../../app/cli/crontab/parse-crontab.ts';

const jobsOf = (text: string, isSystem = false): readonly CrontabJob[] => {
  const { jobs, badLines } = parseCrontab(text, isSystem);
  expect(badLines).to.deep.equal([]);
  return jobs;
};
const onlyJob = (text: string, isSystem = false): Partial<CrontabJob> =>
  jobsOf(text, isSystem)[0] ?? {};

describe('a crontab', () => {
  it('has a job a line, with five fields and a command', () => {
    expect(jobsOf('\n  30 2\t* * MON-FRI   backup  --all \r\n@daily tidy\n')).to.deep.equal([
      {
        line: 2,
        schedule: '30 2\t* * MON-FRI',
        user: null,
        command: 'backup  --all',
        stdin: null,
        comment: null,
        zone: null,
      },
      {
        line: 3,
        schedule: '@daily',
        user: null,
        command: 'tidy',
        stdin: null,
        comment: null,
        zone: null,
      },
    ]);
  });

  it('of the system has a user before each command', () => {
    expect(onlyJob('17 * * * * root cd / && run-parts /etc/cron.hourly', true)).to.include({
      user: 'root',
      command: 'cd / && run-parts /etc/cron.hourly',
    });
    expect(onlyJob('@weekly www-data rotate', true)).to.include({
      user: 'www-data',
      command: 'rotate',
    });
  });

  it('ends a command at the first %, and sends what follows to its input', () => {
    expect(onlyJob('0 9 * * * date +\\%F; mail boss%Hello%100\\% done')).to.include({
      command: 'date +%F; mail boss',
      stdin: 'Hello\n100% done',
    });
  });

  it('sets a zone for the lines that follow, CRON_TZ before TZ', () => {
    const text = [
      '0 1 * * * a',
      "TZ = ':Europe/Berlin'",
      '0 1 * * * b',
      'CRON_TZ="Asia/Tokyo"',
      '0 1 * * * c',
      'CRON_TZ=',
      '0 1 * * * d',
    ].join('\n');
    expect(jobsOf(text).map(({ zone }) => zone)).to.deep.equal([
      null,
      'Europe/Berlin',
      'Asia/Tokyo',
      'Europe/Berlin',
    ]);
  });

  it('names variables that only matter to commands', () => {
    const text = 'MAILTO=""\n"PATH" = /bin:/usr/bin\nMAILTO=ops\n0 1 * * * a=1 run\n';
    const { variables, jobs } = parseCrontab(text, false);
    expect(variables).to.deep.equal(['MAILTO', 'PATH']);
    expect(jobs.map(({ command }) => command)).to.deep.equal(['a=1 run']);
  });

  it('uses the comment directly above a job, unless it is a disabled job', () => {
    const text = [
      '# m h  dom mon dow   command',
      '0 1 * * * a',
      '## Nightly backup',
      '0 2 * * * b',
      '#0 3 * * * old',
      '0 3 * * * c',
      '# far away',
      '',
      '0 4 * * * d',
    ].join('\n');
    expect(jobsOf(text).map(({ comment }) => comment)).to.deep.equal([
      null,
      'Nightly backup',
      null,
      null,
    ]);
  });

  it('names the line and the remedy if it cannot be imported', () => {
    const text = [
      '@reboot start',
      '61 * * * * a',
      '0 1 * * *',
      'what is this',
      '@every_minute b',
      'CRON_TZ=Mars/Olympus',
      '0 1 * * * c',
    ].join('\n');
    const { badLines, jobs } = parseCrontab(text, false);
    expect(jobs).to.deep.equal([]);
    expect(badLines.map(({ line, issue }) => `${line}: ${issue}`)).to.deep.equal([
      '1: @reboot has no equivalent: the service does not fire when a machine starts; remove the line',
      '2: the minute field: "61" is outside 0–59; correct the schedule',
      '3: has no command; add one or make the line a comment',
      '4: needs five fields and a command; complete it or make it a comment',
      '5: "@every_minute" is not one of @yearly @annually @monthly @weekly @daily @midnight @hourly; correct the schedule',
      '7: the time zone of line 6: "Mars/Olympus" is not a time zone of the tz database; correct it there',
    ]);
    const [bare] = parseCrontab('0 1 * * * backup', true).badLines;
    expect(bare?.issue).to.include('without --system');
  });
});
