import type { Finding, Verdict } from '../../doctor/finding.ts';
import { exitCodes } from '../calling/command-errors.ts';
import { storeSettings } from '../calling/open-stores.ts';
import type { Session } from '../calling/session.ts';
import { dataDir, flag, text, wholeNumber, withDefault } from '../options.ts';
import type { CommandLine } from '../program.ts';
import { printable } from '../terminal/paint.ts';
import { withProgress } from './archive-progress.ts';

/** `svc simulate` */
export function addSimulateCommand(line: CommandLine): void {
  line.add(line.program, 'simulate', {
    description: 'forecast the fires of all tasks per hour; reads the store',
    options: {
      days: withDefault(wholeNumber('n', 'number of days, 1-366', 1, 366), 30),
      from: text('instant', 'start (default: now)'),
      hourly: flag('print a line for each hour'),
      dataDir,
    },
    examples: ['simulate', 'simulate --days 7 --hourly', 'simulate --from 2026-12-24T00:00Z'],
    run: async (session, options) => {
      const { simulate } = await import('../forecast/simulate.ts');
      await simulate(session, options);
    },
  });
}

/** `svc doctor`, `svc admin reset` */
export function addStoreCommands(line: CommandLine): void {
  line.add(line.program, 'doctor', {
    description: 'check settings, stores, clocks, lag and invariants, and advise what to do',
    options: { quick: flag('do not read the whole log'), dataDir },
    examples: ['doctor', 'doctor --quick --json'],
    run: async (session, { quick = false, ...options }) => {
      const { env } = session.environment;
      const settings = storeSettings(env, options.dataDir);
      const { examine } = await import('../../doctor/examine.ts');
      const { clock, client } = session;
      const findings = await withProgress(session, (progress) =>
        examine({ env, settings, clock, url: client.url, progress, whole: !quick }),
      );
      const count = (wanted: Verdict): number =>
        findings.filter(({ verdict }) => verdict === wanted).length;
      const [faults, warnings] = [count('fault'), count('warn')];
      session.answer({ faults, warnings, findings }, () => {
        const lines = findings.map((finding) => lineOf(session, finding));
        return [...lines, '', summaryOf(faults, warnings)].join('\n');
      });
      return faults > 0 ? exitCodes.failure : exitCodes.ok;
    },
  });
  const admin = line.group('admin', "commands on the service's machine, without the interface");
  line.add(admin, 'reset', {
    description: 'give the admin agent a new secret and end its sessions',
    options: {
      agent: text('id', 'another agent with the scope admin'),
      dataDir,
    },
    examples: ['admin reset'],
    run: async (session, options) => {
      const { resetAdmin } = await import('./admin-reset.ts');
      return resetAdmin(session, options);
    },
  });
}

function lineOf({ paint }: Session, { check, verdict, found, advice }: Finding): string {
  const colour = { ok: paint.good, warn: paint.warning, fault: paint.bad }[verdict];
  const line = `${colour(verdict.padEnd(5))}  ${check.padEnd(14)}  ${printable(found)}`;
  return advice === null ? line : `${line}\n${' '.repeat(23)}→ ${printable(advice)}`;
}

function summaryOf(faults: number, warnings: number): string {
  const of = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
  if (faults + warnings === 0) return 'no problems found';
  return `${of(faults, 'fault')}, ${of(warnings, 'warning')}`;
}
