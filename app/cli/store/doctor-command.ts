import type { Finding, Verdict } from '../../doctor/finding.ts';
import { withScreen } from './archive-screen.ts';
import { exitCodes } from '../calling/faults.ts';
import { storeSettings } from '../calling/on-store.ts';
import { printable } from '../terminal/paint.ts';
import type { CommandLine } from '../program.ts';
import type { Session } from '../calling/session.ts';

interface DoctorOptions {
  readonly dataDir?: string;
  readonly quick?: boolean;
}

/** `svc doctor` */
export function addDoctorCommand(line: CommandLine): void {
  const command = line.program
    .command('doctor')
    .description(
      'looks at settings, stores, clocks, lag and what must always hold, and says what to do',
    )
    .option('--quick', 'does not read the whole log')
    .option('--data-dir <folder>', 'the folder of the embedded stores (SVC_DATA_DIR; ./data)');
  line.does<DoctorOptions>(
    command,
    ['doctor', 'doctor --quick --json'],
    async (session, options) => {
      const { env } = session.surroundings;
      const settings = storeSettings(env, options.dataDir);
      const { examine } = await import('../../doctor/examine.ts');
      const findings = await withScreen(session, (progress) =>
        examine({
          ...{ env, settings, url: session.client.url, progress },
          clock: session.clock,
          whole: options.quick !== true,
        }),
      );
      const count = (wanted: Verdict): number =>
        findings.filter(({ verdict }) => verdict === wanted).length;
      const [faults, warnings] = [count('fault'), count('warn')];
      session.answer({ faults, warnings, findings }, () =>
        [...findings.map((finding) => shown(session, finding)), '', sum(faults, warnings)].join(
          '\n',
        ),
      );
      return faults > 0 ? exitCodes.failure : exitCodes.ok;
    },
  );
}

function shown({ paint }: Session, { check, verdict, found, advice }: Finding): string {
  const colour = { ok: paint.good, warn: paint.warning, fault: paint.bad }[verdict];
  const line = `${colour(verdict.padEnd(5))}  ${check.padEnd(14)}  ${printable(found)}`;
  return advice === null ? line : `${line}\n${' '.repeat(23)}→ ${printable(advice)}`;
}

function sum(faults: number, warnings: number): string {
  const of = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
  if (faults + warnings === 0) return 'all is well';
  return `${of(faults, 'fault')}, ${of(warnings, 'warning')}`;
}
