import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkFile } from './support/architecture/check.ts';
import { typescriptFiles } from './support/architecture/typescript-files.ts';
import { projectRoot } from './support/project-root.ts';

describe('the architecture', () => {
  const files = typescriptFiles(projectRoot);

  it('finds the files of the folders', () => {
    expect(files).to.include.members(['domain/clock.ts', 'observability/telemetry.ts']);
  });

  it('is kept by every file', () => {
    const violations = files.flatMap((path) =>
      checkFile(path, readFileSync(join(projectRoot, path), 'utf8')),
    );
    expect(violations.join('\n')).to.equal('');
  });
});

describe('the architecture check', () => {
  // Assembled from parts, so that a search of the project for such marks finds only real ones.
  const mark = ['TO', 'DO'].join('');
  const ignore = ['@ts', 'ignore'].join('-');

  /** Files with their sources, and the message that each must cause. */
  const breaches: readonly (readonly [path: string, source: string, says: RegExp])[] = [
    ['domain/x.ts', "import express from 'express';", /x\.ts:1 imports the package 'express'/],
    ['domain/x.ts', "import { readFile } from 'node:fs';", /imports 'node:fs'/],
    ['domain/x.ts', "import { createHash } from 'node:crypto';", /imports 'node:crypto'/],
    ['domain/a/x.ts', "import type { T } from '../../api/t.ts';", /\(api\/t\.ts\), which domain\//],
    [
      'domain/x.ts',
      "export * from '../stores/sqlite/log.ts';\nexport const a = 1;",
      /stores\/sqlite\/log\.ts/,
    ],
    ['domain/x.ts', "let a: import('../app/main.ts').Main;", /app\/main\.ts/],
    ['domain/x.ts', "const m = await import('mongodb');", /package 'mongodb'/],
    ['domain/x.ts', "const m = require('mongodb');", /package 'mongodb'/],
    ['domain/x.ts', 'const m = await import(name);', /computed name/],
    ['domain/x.ts', 'const t = Date.now();', /no clock/],
    ['domain/x.ts', 'const t = new Date();', /no clock/],
    ['domain/x.ts', 'setTimeout(go, 1);', /uses setTimeout/],
    ['domain/x.ts', 'const t = `a ${Date.now()} b`;', /no clock/],
    ['projections/x.ts', "import '../observability/logger.ts';", /which projections\/ may not/],
    ['scheduler/x.ts', "import '../stores/sqlite/log.ts';", /which scheduler\/ may not/],
    ['scheduler/x.ts', "import '../app/configuration.ts';", /which scheduler\/ may not/],
    ['domain/schedule/x.ts', "import '../tasks/task.ts';", /which domain\/schedule\/ may not/],
    ['domain/pipeline/x.ts', "import '../runs/run.ts';", /which domain\/pipeline\/ may not/],
    ['projections/views/x.ts', "import '../projector/view.ts';", /projections\/views\/ may not/],
    ['projections/reading/x.ts', "import '../replays/replayer.ts';", /reading\/ may not/],
    ['scheduler/tools/x.ts', "import '../runs/run-queue.ts';", /scheduler\/tools\/ may not/],
    ['scheduler/processes/x.ts', "import '../worker.ts';", /scheduler\/processes\/ may not/],
    ['app/configuration/x.ts', "import '../stores.ts';", /app\/configuration\/ may not/],
    ['stores/sqlite/x.ts', "import '../mongodb/views.ts';", /which stores\/sqlite\/ may not/],
    ['stores/sqlite/x.ts', "import '../../scheduler/worker.ts';", /stores\/sqlite\/ may not/],
    ['stores/mongodb/x.ts', "import '@eventstore/db-client';", /package '@eventstore\/db-client'/],
    ['api/x.ts', "import '../scheduler/worker.ts';", /which api\/ may not/],
    ['api/x.ts', 'const port = process.env.SVC_PORT;', /process\.env/],
    ['extensions/webui/x.ts', "import '../../domain/clock.ts';", /extensions\/webui\/ may not/],
    ['extensions/host/x.ts', "import '../../stores/sqlite/log.ts';", /which extensions\/ may not/],
    ['domain/x.ts', "import { a } from './a';", /without its ending/],
    ['domain/index.ts', 'export const a = 1;', /barrel/],
    ['domain/x.ts', "export * from './a.ts';\nexport { b } from './b.ts';", /barrel/],
    ['domain/utils/x.ts', '', /folder named by syntax/],
    ['domain/SomeThing.ts', '', /kebab-case/],
    ['shared/x.ts', '', /no room/],
    ['domain/x.ts', 'a;\n'.repeat(401), /401 lines/],
    ['domain/x.ts', 'let a: any;', /type any/],
    ['domain/x.ts', 'const a = b as any;', /type any/],
    ['domain/x.ts', 'function f(a: Map<string, any>) {}', /type any/],
    ['domain/x.ts', 'class Refused extends Error {}', /error class whose name/],
    ['api/x.ts', 'class Refused<T> extends errors.HttpError implements A {}', /error class/],
    ['test/x.ts', 'throw new (class extends Error {})();', /error class whose name/],
    ['domain/x.ts', `// ${mark}: later`, /TODO/],
    ['test/x.test.ts', `// ${ignore}`, /@ts-ignore/],
    ['test/x.test.ts', 'if (isWindows) this.skip();', /skips a test/],
    ['test/process/x.ts', "(long ? it : it.skip)('runs', run);", /skips a test/],
    ['test/process/x.test.ts', "xdescribe('later', () => {});", /skips a test/],
    ['api/x.ts', 'this.#clock.at(this.#clock.now() + 9, go);', /use after/],
    ['test/api/x.test.ts', 'await new Promise((go) => setTimeout(go, 9));', /sleeps/],
  ];
  for (const [path, source, says] of breaches) {
    it(`refuses ${JSON.stringify(source.slice(0, 50))} in ${path}`, () => {
      const violations = checkFile(path, source);
      expect(violations, violations.join('\n')).to.have.lengthOf(1);
      expect(violations[0]).to.match(says);
    });
  }

  it('names the line of the import', () => {
    const source = '/* one\ntwo */\nconst a = `\n${b}`;\n\nimport {\n  x,\n} from "mongodb";\n';
    expect(checkFile('api/x.ts', source)[0]).to.match(/^api\/x\.ts:8 /);
  });

  it('accepts what the table allows', () => {
    const allowed: readonly (readonly [path: string, source: string])[] = [
      ['domain/ids.ts', "import { createHash } from 'node:crypto';"],
      ['domain/x.ts', "import Ajv from 'ajv/dist/2020.js';\nimport { a } from './a/b.ts';"],
      [
        'stores/sqlite/x.ts',
        "import type { Coordination } from '../../scheduler/coordination.ts';",
      ],
      ['stores/mongodb/x.ts', "import { MongoClient } from 'mongodb';"],
      ['projections/reading/x.ts', "import '../views/runs.ts';\nimport '../../domain/ids.ts';"],
      ['app/configuration/x.ts', 'console.log(process.env.HOME);'],
      ['api/x.ts', "import { silent } from '../observability/telemetry.ts';"],
      ['extensions/webui/x.ts', "import type { Context } from '../contract.ts';"],
      ['app/x.ts', "import '../stores/sqlite/log.ts';\nconsole.log(process.env.HOME);"],
      ['test/process/x.test.ts', 'setTimeout(stop, 9);'],
      ['bench/x.ts', "import 'bullmq';"],
      ['domain/x.ts', 'class OldError<T extends Error> extends ErrorBase<T> {}'],
      ['domain/x.ts', 'class Cause<T extends Error> extends List<HttpError> {}'],
    ];
    expect(allowed.flatMap(([path, source]) => checkFile(path, source))).to.deep.equal([]);
  });

  it('is not misled by comments, strings, templates and regular expressions', () => {
    const source = [
      "// import 'express';",
      "/* from 'express' */",
      'const a = "import \'express\'";',
      "const b = `import 'express' ${c + `${d}`} from 'express'`;",
      "const e = f.replace(/'/g, '') + g / h / i;",
      'const expected = "any";',
      'const first = Promise.any([j]);',
      'export const from = k;',
      "const l = { from: 'express' };",
      "export const m = new Date(n), o = 'express';",
    ].join('\n');
    expect(checkFile('domain/x.ts', source)).to.deep.equal([]);
  });
});
