import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { read } from '../../docs/documents.ts';
import { projectRoot } from '../../support/project-root.ts';
import {
  ServiceProcess,
  buildService,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { makeAnalysed } from './analysis-store.ts';

/** A command of the page, and the output below it. */
interface Asked {
  readonly command: string;
  readonly output: string;
}

/** The commands of the page, in order; a continued command ends its lines with a backslash. */
function commandsOf(text: string): readonly Asked[] {
  const blocks = [...text.matchAll(/^```console\n([\s\S]*?)^```$/gm)].map(
    ([, block]) => block ?? '',
  );
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .filter((each) => each !== '')
      .map((each) => {
        const [, command = '', output = ''] = /^((?:.*\\\n)*.*\n)([\s\S]*)$/.exec(each) ?? [];
        return { command, output };
      }),
  );
}

/** The titles of a table, separated by two or more spaces. */
const titlesOf = (output: string): readonly string[] =>
  (output.split('\n').find((line) => line.trim() !== '') ?? '').trim().split(/ {2,}/);

const isTable = (output: string): boolean =>
  output.includes('─') || /^[a-z]+(?: {2,}[a-z0-9 ]+)+$/m.test(output.split('\n')[0] ?? '');

describe("an analyst's questions", function () {
  this.timeout(480_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  it('are answered by the commands of the page, with the columns that it shows', async () => {
    const text = read('docs/how-to/analysis.md');
    const [, preparation = ''] = /^```sh\n([\s\S]*?)^```$/m.exec(text) ?? [];
    const asked = commandsOf(text);
    expect(text.match(/^## \d+\. /gm)).to.have.length(10);
    expect(asked.length).to.be.at.least(10);
    const data = join(directory(), 'data');
    const service = await ServiceProcess.start({ SVC_DATA_DIR: data, SVC_RATE_LIMIT: '0' });
    const credentials = credentialsIn(data);
    const admin = service.client(await signIn(service.client(), credentials));
    await makeAnalysed(admin, credentials.agent_id);

    const mark = '=====';
    // The preparation calls `svc` by npm, as the page says. The other calls spare npm's own time.
    const cli = join(projectRoot, 'dist/app/cli.js');
    const script = [
      preparation,
      `svc() { '${process.execPath}' '${cli}' "$@"; }`,
      ...asked.map(({ command }) => `${command.trimEnd()}\necho ${mark}`),
    ].join('\n');
    const { stdout, stderr, status } = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: projectRoot,
      encoding: 'utf8',
      timeout: 300_000,
      env: {
        ...process.env,
        SVC_URL: service.address,
        SVC_DATA_DIR: data,
        // Where it keeps its tokens: not in the user's home directory.
        XDG_STATE_HOME: join(directory(), 'state'),
        NO_COLOR: '1',
      },
    });
    expect(status, stderr).to.equal(0);
    const outputs = stdout.split(`${mark}\n`);
    for (const [index, { command, output }] of asked.entries()) {
      const found = outputs[index] ?? '';
      expect(found.trim(), command).to.not.equal('');
      if (!isTable(output)) continue;
      // The times in the titles of past states differ.
      const plain = (titles: readonly string[]) =>
        titles.map((each) => each.replace(/AT \d.*/, 'AT'));
      expect(plain(titlesOf(found)), command).to.deep.equal(plain(titlesOf(output)));
      expect(found.trim().split('\n').length, command).to.be.greaterThan(1);
    }
    const [slowest = '', kept = '', retried = '', changed = ''] = outputs;
    expect(slowest).to.match(/^\d{4}-W\d\d {2}collect +\d/m);
    expect(kept).to.match(/\d+ +\d+ +\d+/);
    expect(retried).to.match(/^connect ECONNREFUSED .* collect +7 /m);
    expect(changed).to.include('the reports database has moved');
    expect((await service.terminate()).code).to.equal(0);
  });
});
