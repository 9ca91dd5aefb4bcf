import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { projectRoot } from '../../support/project-root.ts';

const run = promisify(execFile);
const mocha = fileURLToPath(new URL('../../../node_modules/mocha/bin/mocha.js', import.meta.url));
const table = 'test/domain/schedule/schedule-table.test.ts';

describe('the fires of a schedule in a process of any time zone', () => {
  for (const zone of ['UTC', 'Asia/Kolkata', 'America/New_York']) {
    it(`are the same with TZ=${zone}`, async () => {
      const { stdout } = await run(process.execPath, [mocha, '--reporter', 'json', table], {
        cwd: projectRoot,
        env: { ...process.env, TZ: zone },
        maxBuffer: 16 * 1024 * 1024,
      });
      const { stats } = JSON.parse(stdout) as { stats: { passes: number; failures: number } };
      expect(stats.failures).to.equal(0);
      expect(stats.passes).to.be.above(150);
    }).timeout(180_000);
  }
});
