import { expect } from 'chai';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { advisoriesIn } from '../../../app/dependencies/advisories.ts';
import { readDependencies } from '../../../app/dependencies/dependency.ts';
import { faultsOf } from '../../../app/dependencies/faults.ts';
import { isAllowedLicence } from '../../../app/dependencies/licence.ts';
import { reportOf } from '../../../app/dependencies/report.ts';
import { projectRoot } from '../../support/project-root.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the dependencies of this project', () => {
  it('have allowed licences, and no install script that npm may run', () => {
    expect(faultsOf(readDependencies(projectRoot))).to.deep.equal([]);
  });
});

describe('the report of dependencies', () => {
  const directory = useTemporaryDirectory();
  const sound = { version: '1.0.0', license: 'MIT', integrity: 'sha512-x' };

  function write(file: string, content: object): void {
    const path = join(directory(), file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(content));
  }

  function project(packages: Readonly<Record<string, object>>, allowScripts = {}) {
    write('package.json', { dependencies: { one: '1.0.0' }, allowScripts });
    write('package-lock.json', { packages: { '': {}, ...packages } });
    return readDependencies(directory());
  }

  it('lists the production dependencies with licences, and counts all licences', () => {
    const scripted = { ...sound, license: 'ISC', hasInstallScript: true };
    const found = project({
      'node_modules/one': sound,
      'node_modules/one/node_modules/@a/inner': scripted,
      'node_modules/tool': { ...sound, dev: true },
    });
    expect(reportOf(found)).to.equal(
      [
        'one 1.0.0       MIT             direct',
        '@a/inner 1.0.0  ISC             install script, denied',
        '',
        'Production: 2 packages: 1 ISC, 1 MIT',
        'Development: 1 MIT',
      ].join('\n'),
    );
  });

  it('finds licences that are missing, not allowed, or differ from the lock file', () => {
    const { license: _none, ...without } = sound;
    write('node_modules/other/package.json', { version: '1.0.0', license: 'GPL-3.0-only' });
    const found = project({
      'node_modules/bare': without,
      'node_modules/copyleft': { ...sound, license: 'AGPL-3.0-only' },
      'node_modules/other': sound,
    });
    expect(faultsOf(found)).to.deep.equal([
      'bare 1.0.0 names no licence',
      'copyleft 1.0.0 has the licence AGPL-3.0-only, which is not allowed',
      'other 1.0.0 has the licence GPL-3.0-only, but MIT in package-lock.json',
    ]);
  });

  it('finds install scripts that are not denied by name, even if the lock file hides them', () => {
    write('node_modules/hidden/package.json', {
      version: '1.0.0',
      license: 'MIT',
      scripts: { postinstall: 'node steal.js' },
    });
    const scripted = { ...sound, hasInstallScript: true };
    const packages = {
      'node_modules/known': scripted,
      'node_modules/fresh': scripted,
      'node_modules/hidden': sound,
    };
    expect(faultsOf(project(packages, { known: false, fresh: true, gone: false }))).to.deep.equal([
      'fresh 1.0.0 has an install script: set "fresh": false in allowScripts of package.json if it works without',
      'hidden 1.0.0 has an install script: set "hidden": false in allowScripts of package.json if it works without',
      'allowScripts names gone, which has no install script: remove it',
    ]);
  });

  it('finds packages without integrity, and installed ones of another version', () => {
    write('node_modules/stale/package.json', { version: '0.9.0', license: 'MIT' });
    const { integrity: _none, ...loose } = sound;
    const found = project({ 'node_modules/stale': sound, 'node_modules/loose': loose });
    expect(faultsOf(found)).to.deep.equal([
      'stale 1.0.0 is installed as 0.9.0: run npm ci',
      'loose 1.0.0 has no integrity in package-lock.json',
    ]);
  });
});

describe('a licence', () => {
  const cases: readonly (readonly [expression: string, isAllowed: boolean])[] = [
    ['MIT', true],
    ['GPL-3.0-only', false],
    ['(MIT OR GPL-3.0-only)', true],
    ['MIT AND GPL-3.0-only', false],
    ['MIT AND (GPL-3.0-only OR ISC)', true],
    ['GPL-3.0-only AND MIT OR ISC', true],
    ['GPL-3.0-only AND (MIT OR ISC)', false],
    ['Apache-2.0 WITH LLVM-exception', false],
    ['SEE LICENSE IN LICENSE.md', false],
    ['UNLICENSED', false],
    ['(MIT', false],
    ['MIT)', false],
    ['', false],
  ];
  for (const [expression, isAllowed] of cases) {
    it(`is ${isAllowed ? 'allowed' : 'not allowed'}: ${JSON.stringify(expression)}`, () => {
      expect(isAllowedLicence(expression)).to.equal(isAllowed);
    });
  }
});

describe('the response of npm audit', () => {
  it('names vulnerable packages', () => {
    const vulnerabilities = { ws: { severity: 'high', range: '<8.17.1' } };
    expect(advisoriesIn(JSON.stringify({ vulnerabilities }))).to.deep.equal({
      kind: 'checked',
      vulnerable: ['ws <8.17.1 has a known vulnerability (high)'],
    });
    expect(advisoriesIn('{"vulnerabilities":{}}')).to.deep.equal({
      kind: 'checked',
      vulnerable: [],
    });
  });

  it('is distinguished from no response', () => {
    const failed = { message: '405 Method Not Allowed', error: { summary: '' } };
    expect(advisoriesIn(JSON.stringify(failed))).to.deep.equal({
      kind: 'unavailable',
      reason: '405 Method Not Allowed',
    });
    expect(advisoriesIn('').kind).to.equal('unavailable');
  });
});
