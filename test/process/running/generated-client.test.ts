import { expect } from 'chai';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { generateApi } from 'swagger-typescript-api';
import { useRunningApi } from '../../support/running-api.ts';
import { makeTemporaryDirectory } from '../../support/temporary-directory.ts';

/** A program that a user would write with the generated client. */
const program = `
import { Api, type Run, type Task } from './client.ts';

export async function createRunRead(
  baseUrl: string,
  token: string,
  owner: string,
): Promise<{ task: Task; run: Run; listed: number; refused: string }> {
  const api = new Api<string>({
    baseUrl,
    securityWorker: (held) => ({ headers: { authorization: \`Bearer \${held}\` } }),
    baseApiParams: { secure: true },
  });
  api.setSecurityData(token);
  const { data: task } = await api.tasks.createTask({
    title: 'Generated',
    description: 'Made by a generated client',
    schedule_kind: 'cron',
    schedule_expr: '0 9 * * *',
    payload: { pipeline: [{ uses: 'echo', with: { text: 'hello' } }] },
    created_by: owner,
  });
  const asked = await api.tasks.runTask({ id: task.id });
  const position = asked.headers.get('x-event-position') ?? undefined;
  const { run_id } = asked.data.details;
  const { data: run } = await api.runs.getRun({ runId: run_id, after: position });
  const page = await api.tasks.listTasks({ search: 'Generated', limit: 1, after: position });
  const refused = await api.tasks
    .getTask({ id: run_id })
    .then(() => '', (answer: { error: { error: string } }) => answer.error.error);
  return { task, run, listed: page.data.total, refused };
}
`;

type Outcome = {
  readonly task: { readonly id: string; readonly title: string };
  readonly run: { readonly task_id: string; readonly state: string };
  readonly listed: number;
  readonly refused: string;
};
type Program = {
  createRunRead(url: string, token: string, owner: string): Promise<Outcome>;
};

const compilerOptions = {
  target: 'es2023',
  lib: ['es2023', 'dom', 'dom.iterable'],
  module: 'nodenext',
  types: [],
  strict: true,
  rewriteRelativeImportExtensions: true,
};

describe('a client that a public generator creates from /openapi.json', () => {
  const api = useRunningApi();

  it('compiles, and creates a task, runs it and reads it', async function () {
    this.timeout(120_000);
    const directory = await makeTemporaryDirectory();
    try {
      const { client, id } = api().admin;
      const { json } = await client.get('/openapi.json', { token: null });
      const { files } = await generateApi({
        spec: json,
        output: false,
        silent: true,
        httpClientType: 'fetch',
        extractRequestParams: true,
      });
      const generated = files.map(({ fileContent }) => fileContent).join('\n');
      const write = (name: string, text: string) => writeFile(join(directory.path, name), text);
      await write('client.ts', generated);
      await write('program.ts', program);
      await write('package.json', '{"type":"module"}');
      await write('tsconfig.json', JSON.stringify({ compilerOptions, files: ['program.ts'] }));
      await compile(directory.path);
      const made = (await import(
        pathToFileURL(join(directory.path, 'program.js')).href
      )) as Program;
      const outcome = await made.createRunRead(api().url, client.token ?? '', id);
      expect(outcome.task.title).to.equal('Generated');
      expect(outcome.run).to.include({ task_id: outcome.task.id, state: 'queued' });
      expect(outcome.listed).to.equal(1);
      expect(outcome.refused).to.equal('not_found');
    } finally {
      await directory.remove();
    }
  });
});

/** @throws Error with the compiler's output */
async function compile(directory: string): Promise<void> {
  const require = createRequire(import.meta.url);
  const compiler = join(dirname(require.resolve('typescript/package.json')), 'bin', 'tsc');
  await promisify(execFile)(process.execPath, [compiler, '-p', directory]).catch(
    (fault: { readonly stdout: string }) => {
      throw new Error(fault.stdout, { cause: fault });
    },
  );
}
