import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RECORD_FOLDER, type Observation } from '../support/interface-record.ts';
import { projectRoot } from '../support/project-root.ts';
import { coveragePage } from './interface-coverage-page.ts';
import { shownElsewhere } from './interface-elsewhere.ts';
import { coverageNeeds } from './interface-needs.ts';

// Runs the tests that make requests, and writes which of them show which items: `npm run
// docs:coverage`.
const folders = ['test/api', 'test/extensions'];
const page = join(projectRoot, 'docs/reference/interface-coverage.md');

const folder = mkdtempSync(join(tmpdir(), 'interface-'));
try {
  const mocha = join(projectRoot, 'node_modules/mocha/bin/mocha.js');
  const options = ['--reporter', 'dot', '--require', './test/support/interface-record.ts'];
  const { status } = spawnSync(process.execPath, [mocha, ...options, ...folders], {
    cwd: projectRoot,
    env: { ...process.env, [RECORD_FOLDER]: folder },
    stdio: 'inherit',
  });
  const seen = readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Observation),
  );
  const { text, missing } = coveragePage(coverageNeeds(), seen, shownElsewhere);
  writeFileSync(page, text);
  for (const each of missing) console.error(`No test shows ${each}`);
  process.exitCode = status === 0 && missing.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
}
