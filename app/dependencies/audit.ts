import { join } from 'node:path';
import { askRegistry } from './advisories.ts';
import { readDependencies } from './dependency.ts';
import { faultsOf } from './faults.ts';
import { reportOf } from './report.ts';

// `npm run audit`: reports the dependencies in the lock file. Fails for a licence that is unknown or not allowed, an
// install script that is not denied, and a known vulnerability. With --offline, the registry is not asked.
const project = join(import.meta.dirname, '../..');
const dependencies = readDependencies(project);
process.stdout.write(`${reportOf(dependencies)}\n`);

const faults = [...faultsOf(dependencies)];
if (!process.argv.includes('--offline')) {
  const advisories = await askRegistry(project);
  if (advisories.kind === 'checked') {
    faults.push(...advisories.vulnerable);
  } else {
    process.stderr.write(`Vulnerabilities were not checked: ${advisories.reason}\n`);
  }
}
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.stdout.write(faults.length === 0 ? 'No faults.\n' : `Faults: ${faults.length}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
